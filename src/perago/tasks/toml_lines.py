"""On which line of a TOML document something stands; the parser does not tell."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

Place = tuple[str | int, ...]
"""The keys and numbers that lead to a value."""


def line_of(text: str, place: Place) -> int:
    """Find the line on which something is written; of what is missing, that of its table."""
    written = list(_statements(text))
    while place:
        for line, table, found in written:
            if table[: len(place)] == place or _holds(table, found, place):
                return line
        place = place[:-1]
    return 1


def _statements(text: str) -> Iterator[tuple[int, Place, Mapping[str, Any]]]:
    """Read a document statement by statement: the first line, the table it is in, what it says."""
    table: Place = ()
    counts: Counter[Place] = Counter()
    begun: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        begun.append(line)
        try:
            found = tomllib.loads("\n".join(begun))
        except tomllib.TOMLDecodeError:
            continue
        first, opening, begun = number - len(begun) + 1, begun[0].lstrip(), []
        if opening.startswith("["):
            keys = _keys(found)
            if opening.startswith("[["):
                counts[keys] += 1
            table = _numbered(keys, counts)
            found = {}
        if found or opening.startswith("["):
            yield first, table, found


def _keys(found: Any) -> tuple[str, ...]:
    """Read the keys of a header from what it makes: tables in tables, the last one empty."""
    keys: list[str] = []
    while found:
        found = found[0] if isinstance(found, list) else found
        if not found:
            break
        ((key, found),) = found.items()
        keys.append(key)
    return tuple(keys)


def _numbered(keys: tuple[str, ...], counts: Mapping[Place, int]) -> Place:
    """Put the number of the last table behind each key that is an array of tables."""
    place: list[str | int] = []
    for end in range(1, len(keys) + 1):
        place.append(keys[end - 1])
        if count := counts.get(keys[:end], 0):
            place.append(count - 1)
    return tuple(place)


def _holds(table: Place, found: Any, place: Place) -> bool:
    if place[: len(table)] != table:
        return False
    for step in place[len(table) :]:
        if isinstance(found, Mapping):
            inside = step in found
        else:
            inside = isinstance(found, list) and isinstance(step, int) and step < len(found)
        if not inside:
            return False
        found = found[step]
    return True
