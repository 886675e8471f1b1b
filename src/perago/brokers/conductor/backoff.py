"""How long to wait between polls: little while there is work, ever longer while there is none."""

from __future__ import annotations

from dataclasses import dataclass, replace

LEAST_SECONDS = 0.01
"""Even an interval of nothing is no busy loop."""
_MANY = 64


@dataclass(frozen=True, slots=True)
class Backoff:
    """The waiting of one poller; a value, so every step returns the next one."""

    interval_seconds: float
    max_seconds: float
    misses: int = 0

    @property
    def wait_seconds(self) -> float:
        """Return how long to wait before the next poll."""
        if self.misses == 0:
            return 0.0
        first = max(self.interval_seconds, LEAST_SECONDS)
        return min(first * 2.0 ** (self.misses - 1), max(first, self.max_seconds))

    def after_work(self) -> Backoff:
        """Poll again at once: there may be more."""
        return replace(self, misses=0)

    def after_nothing(self) -> Backoff:
        """Wait twice as long as before; an empty answer and an error count the same."""
        return replace(self, misses=min(self.misses + 1, _MANY))
