"""What a watchdog does about an executor, decided from what it can see."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

BLOATED_SHARE = 0.5
"""An idle executor above this share of the ceiling is replaced, if it has grown there."""
GROWN = 2.0


class HealthVerdict(Enum):
    """What is to be done."""

    KEEP = "keep"
    STUCK = "stuck"
    TOO_BIG = "too big"
    RECYCLE = "recycle"
    NEVER_READY = "never ready"


@dataclass(frozen=True, slots=True)
class Limits:
    """What an executor may do; None is no limit."""

    stuck_after_seconds: float
    start_seconds: float
    max_bytes: int | None = None
    max_attempts: int | None = None


@dataclass(frozen=True, slots=True)
class ExecutorSample:
    """An executor as the watchdog sees it; ``bytes`` is None where it cannot be told."""

    ready: bool
    busy: bool
    age_seconds: float
    silent_seconds: float
    attempts: int
    bytes: int | None = None
    first_bytes: int | None = None


def judge(sight: ExecutorSample, limits: Limits) -> HealthVerdict:
    """Decide about one executor."""
    if not sight.ready:
        late = sight.age_seconds >= limits.start_seconds
        return HealthVerdict.NEVER_READY if late else HealthVerdict.KEEP
    if sight.busy:
        if limits.max_bytes is not None and (sight.bytes or 0) > limits.max_bytes:
            return HealthVerdict.TOO_BIG
        if sight.silent_seconds >= limits.stuck_after_seconds:
            return HealthVerdict.STUCK
        return HealthVerdict.KEEP
    if limits.max_attempts is not None and sight.attempts >= limits.max_attempts:
        return HealthVerdict.RECYCLE
    return HealthVerdict.RECYCLE if _bloated(sight, limits) else HealthVerdict.KEEP


def _bloated(sight: ExecutorSample, limits: Limits) -> bool:
    if limits.max_bytes is None or sight.bytes is None or sight.first_bytes is None:
        return False
    big = sight.bytes > BLOATED_SHARE * limits.max_bytes
    return big and sight.bytes > GROWN * sight.first_bytes
