"""A clock that tests move by hand; every reading is a little later than the last."""

from __future__ import annotations


class Clock:
    def __init__(self) -> None:
        self.seconds = 1_700_000_000.0

    def __call__(self) -> float:
        self.seconds += 0.001
        return self.seconds

    def pass_(self, seconds: float) -> None:
        self.seconds += seconds
