"""Which attempt directories nobody needs any more (W5)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FoundRoom:
    """An attempt directory as the sweep sees it.

    ``in_progress`` is what the broker says of the execution in its name; None when nobody asked.
    """

    name: str
    age_seconds: float
    owner_alive: bool
    has_marker: bool
    in_progress: bool | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a directory goes, and why: the reason is logged either way."""

    remove: bool
    why: str


def judge(found: FoundRoom, ttl_seconds: float) -> Verdict:
    """Remove what a dead owner left; without a marker the broker or the age must tell."""
    if found.has_marker:
        if found.owner_alive:
            return Verdict(remove=False, why="its owner is alive")
        return Verdict(remove=True, why="its owner is gone")
    if found.in_progress is False:
        return Verdict(remove=True, why="no marker and no attempt in progress")
    if found.age_seconds >= ttl_seconds:
        return Verdict(remove=True, why="no marker and older than the time to live")
    return Verdict(remove=False, why="no marker yet; it may be in the making")
