"""When a dead executor is started again (back-off of section 11, W5)."""

from __future__ import annotations

from collections.abc import Sequence

BACKOFF_SECONDS = (1, 2, 4, 8, 16, 30)
HEALTHY_AFTER_SECONDS = 60.0


def backoff_seconds(deaths: int) -> float:
    """Wait this long after the n-th death in a row (n starts at 1)."""
    if deaths < 1:
        return 0.0
    return float(BACKOFF_SECONDS[min(deaths, len(BACKOFF_SECONDS)) - 1])


def deaths_in_a_row(previous: int, lived_seconds: float) -> int:
    """Count this death; a healthy minute forgets the earlier ones."""
    return 1 if lived_seconds >= HEALTHY_AFTER_SECONDS else previous + 1


# --- the breaker: executors that die one after the other ------------------------------------------

WINDOW_SECONDS = 60.0
PAUSE_SECONDS = 60.0
_DEATHS_PER_EXECUTOR = 3
_LEAST_DEATHS = 5


def deaths_allowed(executors: int) -> int:
    """Return how many executors may die in one window before polling stops."""
    return max(_LEAST_DEATHS, _DEATHS_PER_EXECUTOR * executors)


def recent_deaths(deaths: Sequence[float], now: float) -> tuple[float, ...]:
    """Keep the times that can still matter."""
    return tuple(at for at in deaths if now - at < WINDOW_SECONDS + PAUSE_SECONDS)


def closed_until(deaths: Sequence[float], executors: int) -> float:
    """Return until when nothing is polled; 0 when the deaths (times, in order) are few enough.

    The pause begins with the death that was one too many; a task that kills its executor must
    not have all the worker's time.
    """
    allowed = deaths_allowed(executors)
    until = 0.0
    for index in range(allowed - 1, len(deaths)):
        if deaths[index] - deaths[index - allowed + 1] < WINDOW_SECONDS:
            until = deaths[index] + PAUSE_SECONDS
    return until
