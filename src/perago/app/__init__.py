"""Settings become objects here, and only here."""
