"""Versioned object stores behind the ``Store`` port."""
