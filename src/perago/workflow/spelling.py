"""Suggestions for names that were probably misspelt."""

from __future__ import annotations

import difflib
from collections.abc import Collection


def close_to(name: str, names: Collection[str]) -> str:
    """Suggest the nearest known name, or list what there is."""
    near = difflib.get_close_matches(name, names, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return "known are: " + (", ".join(sorted(names)) or "none")
