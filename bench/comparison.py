"""One comparison: contenders that do the same work, measured in turn."""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

Work = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Ratio:
    """How often ``slower`` goes into ``faster``, and what it should at most or at least be."""

    name: str
    of: str
    to: str
    at_most: float | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Named contenders, set up and ready; ``reset`` runs untimed before each measurement."""

    name: str
    what: str
    contenders: Mapping[str, Work]
    ratios: Sequence[Ratio]
    reset: Work = field(default=lambda: None)


@dataclass(frozen=True, slots=True)
class Timing:
    """The seconds of one contender."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Return the middle one."""
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """Return the distance from best to worst, as a share of the median."""
        return (max(self.seconds) - min(self.seconds)) / self.median


def measure(comparison: Comparison, repeats: int, tick: Callable[[], None]) -> dict[str, Timing]:
    """Run all contenders in turn, ``repeats`` times; the first round only warms up."""
    seconds: dict[str, list[float]] = {name: [] for name in comparison.contenders}
    for turn in range(repeats + 1):
        for name, work in comparison.contenders.items():
            comparison.reset()
            began = time.perf_counter()
            work()
            if turn:
                seconds[name].append(time.perf_counter() - began)
            tick()
    return {name: Timing(tuple(found)) for name, found in seconds.items()}


def report(comparison: Comparison, timings: Mapping[str, Timing]) -> dict[str, object]:
    """Put it in the shape that machines compare."""
    ratios = {}
    for ratio in comparison.ratios:
        value = timings[ratio.of].median / timings[ratio.to].median
        holds = ratio.at_most is None or value <= ratio.at_most
        ratios[ratio.name] = {"value": round(value, 3), "target": ratio.at_most, "holds": holds}
    return {
        "name": comparison.name,
        "what": comparison.what,
        "contenders": {
            name: {
                "median": timing.median,
                "spread": round(timing.spread, 3),
                "seconds": timing.seconds,
            }
            for name, timing in timings.items()
        },
        "ratios": ratios,
    }


def machine() -> dict[str, object]:
    """Describe where it was measured."""
    return {
        "python": sys.version.split()[0],
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
    }
