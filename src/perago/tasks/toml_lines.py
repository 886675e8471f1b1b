"""On which line of a TOML document something stands; the parser does not tell."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

Place = tuple[str | int, ...]
"""The keys and numbers that lead to a value."""


def line_of(text: str, place: Place) -> int:
    """Find the line on which something is written; of what is missing, that of its table.

    The document is read line by line: what is there after a line and was not before stands on it.
    """
    lines = text.splitlines(keepends=True)
    document = tomllib.loads(text)
    while place and not _holds(document, place):
        place = place[:-1]
    whole = 0
    for number in range(1, len(lines) + 1):
        try:
            found = tomllib.loads("".join(lines[:number]))
        except tomllib.TOMLDecodeError:
            continue
        if _holds(found, place):
            return whole + 1
        whole = number
    return 1


def _holds(found: Any, place: Place) -> bool:
    for step in place:
        if isinstance(found, Mapping):
            inside = step in found
        else:
            inside = isinstance(found, list) and isinstance(step, int) and step < len(found)
        if not inside:
            return False
        found = found[step]
    return True
