"""Directories that belong to one user: where they are, and who may look inside."""
