"""The workspace on this machine: attempt directories, what is in them, what others left behind."""
