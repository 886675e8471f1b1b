"""Conductor, the production broker."""
