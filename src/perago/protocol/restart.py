"""When a dead executor is started again (back-off of section 11, W5)."""

from __future__ import annotations

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
