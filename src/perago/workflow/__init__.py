"""Conductor's workflow language, as far as both brokers look at it before anything runs."""
