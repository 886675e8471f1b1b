"""The ways an attempt can take through its lifecycle, and which points lie on each."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

from perago.protocol.points import AMID, POINTS
from perago.protocol.values import Phase

C = TypeVar("C")
ALL = os.environ.get("PERAGO_FAULTS") == "all"
"""Whether every case is run; otherwise a selection that takes little time."""

REPORT = ("before report", "after report")
"""The supervisor reports, so these are points of its process."""
BODY = "during body"
"""A place that the body itself reaches."""
_STAGE = {
    f"before {Phase.STAGE}",
    "branch created",
    "uploaded",
    "committed",
    f"after {Phase.STAGE}",
    f"before {Phase.CLEAN_STAGING}",
    f"after {Phase.CLEAN_STAGING}",
    f"during {Phase.STAGE}",
}
_WRITTEN = {"applied", "published"}


def _order() -> tuple[str, ...]:
    """Put the places inside a transfer and inside the body where they come."""
    order = list(POINTS)
    order.insert(order.index("downloaded"), AMID[0])
    order.insert(order.index(f"after {Phase.BODY}"), BODY)
    order.insert(order.index("uploaded"), AMID[1])
    return tuple(order)


def _ordered(points: set[str]) -> tuple[str, ...]:
    return tuple(point for point in ORDER if point in points)


ORDER = _order()
_EXECUTOR = {*POINTS, *AMID} - set(REPORT)
_NOTHING = _EXECUTOR - _STAGE
_LOOKED = set(_ordered(_EXECUTOR)[: _ordered(_EXECUTOR).index("before diff")]) | {
    f"before {Phase.CLEAN_ATTEMPT_DIR}",
    f"after {Phase.CLEAN_ATTEMPT_DIR}",
}
POINTS_OF: dict[str, tuple[str, ...]] = {
    "merge": _ordered(_EXECUTOR),
    "replace": _ordered(_EXECUTOR),
    "no-op": _ordered(_NOTHING - _WRITTEN),
    "relocate": _ordered(_NOTHING),
    "read-only": _ordered(_LOOKED),
}
"""Every point of the executor on a path, in order."""
_READS = ("list", "get object", "get commit")
_STAGING = ("create branch", "upload", "delete", "commit", "delete branch")
CALLS_OF: dict[str, tuple[str, ...]] = {
    "merge": (*_READS, "get branch", *_STAGING, "merge"),
    "replace": (*_READS, "get branch", *_STAGING, "merge", "hard reset"),
    "no-op": (*_READS, "get branch"),
    "relocate": (*_READS, "get branch", "merge", "hard reset"),
    "read-only": _READS,
}
"""The calls on lakeFS that an attempt makes on a path, under some fence."""
FIRST_FENCE = f"before {Phase.FENCE_ONE}"
EARLY = frozenset(ORDER[: ORDER.index(FIRST_FENCE)])
"""Where nothing depends yet on the path or the fence: these points are met once."""
ONCE = ("merge", "hard")


def matters(point: str, path: str, fence: str) -> bool:
    """Tell whether a case differs from all others in something that can matter."""
    return point not in EARLY or (path, fence) == ONCE


AFTER_ABANDONED = frozenset({"replace", "relocate"})
"""Paths of a retry that meets what an attempt published before it was lost."""


class OnPath:
    """What the cases of all families share."""

    path: str

    @property
    def victim(self) -> int:
        """Say which attempt meets the fault: the first one of some paths is there to be lost."""
        return 1 if self.path in AFTER_ABANDONED else 0


MODES = {"no-op": "idle", "relocate": "once"}
FENCES = ("head", "lineage", "hard")


def selected(cases: Sequence[C], quick: Callable[[C], bool]) -> list[C]:
    """Take all cases, or those that are quick."""
    return [case for case in cases if ALL or quick(case)]
