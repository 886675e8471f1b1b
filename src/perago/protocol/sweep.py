"""Which attempt directories nobody needs any more (W5)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FoundRoom:
    """An attempt directory as the sweep sees it."""

    name: str
    age_seconds: float
    owner_alive: bool
    has_marker: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a directory goes, and why: the reason is logged either way."""

    remove: bool
    why: str


def judge(found: FoundRoom, ttl_seconds: float) -> Verdict:
    """Remove what a dead owner left; without a marker only age can tell."""
    if found.has_marker:
        if found.owner_alive:
            return Verdict(remove=False, why="its owner is alive")
        return Verdict(remove=True, why="its owner is gone")
    if found.age_seconds >= ttl_seconds:
        return Verdict(remove=True, why="no marker and older than the time to live")
    return Verdict(remove=False, why="no marker yet; it may be in the making")
