"""Steps that people do: a directory to work in, and an attempt when it is handed in (Q10-Q14)."""
