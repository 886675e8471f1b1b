"""The ``perago`` command. One command per file; each imports what it needs when it runs."""

from __future__ import annotations

from perago.cli.app import main

__all__ = ["main"]
