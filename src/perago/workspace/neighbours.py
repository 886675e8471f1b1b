"""Whether new files can be downloaded beside those that were not looked at (D2, on a branch).

Nothing of a direct workspace was listed, and it may be huge: only directories of A that get a new
file are, each without what lies deeper.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from perago.errors import UnpublishableFileError
from perago.protocol.paths import check_beside, twins
from perago.protocol.values import ChangeSet

MOST_DIRECTORIES = 16
"""From so many directories below one on, all files below it are listed at once."""


class Neighbours(Protocol):
    """Looks into A, the input, and at the branch as it is now."""

    def names(self, directory: str) -> Sequence[str]:
        """Return what lies right below a directory of A; a directory ends in ``/``."""

    def before(self, directory: str) -> Sequence[str]:
        """Return all files below a directory of A."""

    def paths(self, path: str) -> Sequence[str]:
        """Return the files at a path and below it, as they are now."""


def check_added(place: Neighbours, steps: ChangeSet) -> None:
    """Refuse new files beside which something of A could not be downloaded."""
    gone = {*steps.removed}
    pending: dict[str, list[str]] = {"": [*steps.added]} if steps.added else {}
    while pending:
        directory, added = pending.popitem()
        base = f"{directory}/" if directory else ""
        children = _children(base, added)
        present = {*place.names(directory)}
        for name, other in twins(present, children):
            _refuse_twin(place, (base + name, base + other), gone)
        deeper = [name for name in children if name.endswith("/") and name in present]
        if len(deeper) > MOST_DIRECTORIES:
            below = [path for name in deeper for path in children[name]]
            check_beside(below, {*place.before(directory)} - gone)
            continue
        pending |= {base + name.removesuffix("/"): children[name] for name in deeper}


def _children(base: str, paths: Iterable[str]) -> dict[str, list[str]]:
    """Sort paths by the name they have right below a directory."""
    found: dict[str, list[str]] = {}
    for path in paths:
        name, slash, _ = path[len(base) :].partition("/")
        found.setdefault(name + slash, []).append(path)
    return found


def _refuse_twin(place: Neighbours, pair: tuple[str, str], gone: set[str]) -> None:
    new, old = pair
    left: Iterable[str] = {old} - gone
    if old.endswith("/"):
        left = [path for path in place.paths(old.removesuffix("/")) if path.startswith(old)]
    if left:
        raise UnpublishableFileError(
            f"{new!a} cannot be downloaded beside {old!a}: one file system or another takes them"
            " for the same name",
            remedy="write to the name that is there, or remove what is there",
        )
