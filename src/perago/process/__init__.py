"""Executors: processes (or threads) that run one attempt at a time."""
