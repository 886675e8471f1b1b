"""Which attempt directories are no longer needed (W5)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Owner(Enum):
    """What is known of the process that a marker names."""

    ALIVE = "alive"
    GONE = "gone"
    FOREIGN = "foreign"
    """It is of another boot or another PID namespace: its number means nothing here."""


@dataclass(frozen=True, slots=True)
class FoundAttemptDir:
    """An attempt directory as the sweep sees it; ``owner`` is None when no marker names one.

    ``in_progress`` is what the broker says of its attempt; None when the broker could not be asked.
    ``abandoned``: its owner could not remove it and has gone on. ``bare``: there is nothing in it
    but what Perago itself puts there first.
    """

    name: str
    age_seconds: float
    owner: Owner | None
    in_progress: bool | None = None
    abandoned: bool = False
    bare: bool = False


@dataclass(frozen=True, slots=True)
class SweepDecision:
    """Whether a directory goes, and why: the reason is logged either way."""

    remove: bool
    why: str


def judge(found: FoundAttemptDir, ttl_seconds: float) -> SweepDecision:
    """Remove what a dead owner left; of one that cannot be seen from here, broker and age tell.

    Without a marker only a directory without content goes: it may be anybody's.
    """
    if found.owner is None and not found.bare:
        return SweepDecision(remove=False, why="no marker says that it is Perago's")
    if found.abandoned:
        return SweepDecision(remove=True, why="its owner could not remove it")
    if found.owner is Owner.ALIVE:
        return SweepDecision(remove=False, why="its owner is alive")
    if found.owner is Owner.GONE:
        return SweepDecision(remove=True, why="its owner is gone")
    return _judge_by_broker_and_age(found, ttl_seconds)


def _judge_by_broker_and_age(found: FoundAttemptDir, ttl_seconds: float) -> SweepDecision:
    whose, young = "no marker", "it may be in the making"
    if found.owner is Owner.FOREIGN:
        whose, young = "an owner of another boot or PID namespace", "it may be at work"
    if found.in_progress:
        return SweepDecision(remove=False, why=f"{whose}, and its attempt may be in progress")
    if found.in_progress is False:
        return SweepDecision(remove=True, why=f"{whose} and no attempt in progress")
    if found.age_seconds >= ttl_seconds:
        return SweepDecision(remove=True, why=f"{whose} and older than the time to live")
    return SweepDecision(remove=False, why=f"{whose}; {young}")
