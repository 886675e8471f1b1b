"""One level of a version: what lies right below a directory, a part of it at a time. Pure.

Keys are sorted, so all that is below a directory stands together. What fits on a page is looked
over; of a crowded directory only the first key is read, and the next question asks for what comes
after the last key that could be in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from perago.protocol.values import ObjectInfo
from perago.ui.fitting import weight

Page = Callable[[str, int], Sequence[ObjectInfo]]
"""Gives up to so many keys of the directory and below it that come after one."""
MOST_ENTRIES: Final = 200
MOST_WEIGHT: Final = 60_000
_MOST_QUESTIONS: Final = 40
"""A page ends early rather than that a directory of crowded directories takes seconds."""
STEP: Final = 256
"""So many keys are asked for at once."""
_ROW: Final = 200
"""What a row of the page weighs besides names and addresses."""
_LAST: Final = "\U0010ffff" * 256
"""No key has so many bytes: nothing below a directory comes after this."""


@dataclass(frozen=True, slots=True)
class LevelLine:
    """A file, or a directory: its key ends in a slash then, and it has no size."""

    key: str
    name: str
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Level:
    """Some entries of a directory, sorted by key; ``following`` is where the next ones begin."""

    entries: tuple[LevelLine, ...]
    following: str = ""


def read_level(
    page: Page, directory: str, after: str = "", most: int = MOST_ENTRIES, step: int = STEP
) -> Level:
    """Read what comes after a key; ``directory`` is empty or ends in a slash."""
    found: list[LevelLine] = []
    weighed = 0
    place = behind(directory, after)
    for _ in range(_MOST_QUESTIONS):
        infos = page(place, step)
        for info in infos:
            if info.key <= place:
                continue
            entry = entry_of(directory, info)
            weighed += _ROW + 3 * len(entry.key.encode()) + weight(entry.name)
            if found and (len(found) == most or weighed > MOST_WEIGHT):
                return Level(tuple(found), found[-1].key)
            found.append(entry)
            place = behind(directory, entry.key)
        if len(infos) < step:
            return Level(tuple(found))
    return Level(tuple(found), found[-1].key if found else "")


def entry_of(directory: str, info: ObjectInfo) -> LevelLine:
    """Return what a key is on this level: a file of it, or the directory that it is in."""
    name, slash, _ = info.key[len(directory) :].partition("/")
    if slash:
        return LevelLine(f"{directory}{name}/", f"{name}/")
    return LevelLine(info.key, name, info.size)


def behind(directory: str, key: str) -> str:
    """Return after which key the next entry is looked for."""
    is_directory = key.endswith("/") and key != directory
    return key + _LAST if is_directory else key


def crumbs(path: str) -> list[tuple[str, str]]:
    """Part a path into names, each with the path of its directory; the last may be a file."""
    found: list[tuple[str, str]] = []
    for at, character in enumerate(path):
        if character == "/":
            start = len(found[-1][1]) if found else 0
            found.append((path[start : at + 1], path[: at + 1]))
    start = len(found[-1][1]) if found else 0
    return [*found, (path[start:], path)] if path[start:] else found
