"""Time that stands still until a test moves it."""

from __future__ import annotations


class ManualClock:
    """Sleeping moves the time and returns at once."""

    def __init__(self, start: float = 1_000_000_000.0) -> None:
        self._now = start
        self.slept: list[float] = []

    def now(self) -> float:
        """Return seconds since the epoch."""
        return self._now

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Pass the time, and remember that it was asked for."""
        self.slept.append(seconds)
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now += seconds
