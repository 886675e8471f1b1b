"""A person's changes, carried over from one version of the files to another (Q12). Pure."""

from __future__ import annotations

from dataclasses import dataclass

from perago.protocol.diff import diff
from perago.protocol.values import Entry, Manifest


@dataclass(frozen=True, slots=True)
class Edits:
    """What has to be done to the new version: files to put there, and files to remove."""

    puts: tuple[str, ...]
    removes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EditConflict:
    """A path that was changed on both sides, or that has no place in the new version."""

    path: str
    why: str


def carried_over(before: Manifest, mine: Manifest, now: Manifest) -> Edits | EditConflict:
    """Take what a person did to ``before``, which made ``mine`` of it, over to ``now``.

    Whatever differs in ``now`` from what the person began with is another's work: the first such
    path that the person has changed, too, is a conflict. The same change on both sides is none.
    """
    steps = diff(before, mine)
    puts: list[str] = []
    removes: list[str] = []
    for path in sorted((*steps.uploads, *steps.removed)):
        wanted, there = mine.get(path), now.get(path)
        if there == wanted:
            continue
        if there != before.get(path):
            return EditConflict(path, _how(before.get(path), there))
        (removes if wanted is None else puts).append(path)
    left = {*now} - {*removes} | {*puts}
    for path in puts:
        if clash := _in_the_way(path, left):
            return EditConflict(path, f"{clash!r} is there, and one of them is a directory")
    return Edits(tuple(puts), tuple(removes))


def _how(before: Entry | None, there: Entry | None) -> str:
    if before is None:
        return "it was added on both sides, differently"
    return "it was removed there" if there is None else "it was changed there, too"


def _in_the_way(path: str, left: set[str]) -> str | None:
    """Return a file that a path would have to be below of, or that would be below it."""
    parts = path.split("/")
    above = ("/".join(parts[:count]) for count in range(1, len(parts)))
    if found := next((each for each in above if each in left), None):
        return found
    return next((each for each in sorted(left) if each.startswith(f"{path}/")), None)
