"""One comparison: contenders that do the same work, measured in turn."""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

Work = Callable[[], float | None]
"""Does it; returns the seconds when somebody else holds the clock."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a person may change on the command line."""

    counts: tuple[int, ...] = (1_000, 10_000, 100_000)
    gib: tuple[float, ...] = (0.25, 1.0, 4.0)
    peer: bool = True
    """Whether those that are installed from PyPI, and take minutes, run as well."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """How often ``to`` goes into ``of``, and what that should at most or at least be.

    One that misses its target holds all the same when the one named in ``or_else`` holds.
    """

    name: str
    of: str
    to: str
    at_most: float | None = None
    at_least: float | None = None
    or_else: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """Something counted instead of timed."""

    name: str
    value: float
    at_most: float | None = None


@dataclass(frozen=True, slots=True)
class Curve:
    """Contenders that are points of lines: along what, and which line each is on, and where."""

    axis: str
    at: Mapping[str, tuple[str, float]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Named contenders, set up and ready; ``reset`` runs untimed before each measurement.

    Those in ``slow`` run only so many times, without a round that warms up. What is short and
    depends on the mood of a disk runs ``least`` so many times. ``facts`` is asked when all is
    measured.
    """

    name: str
    what: str
    contenders: Mapping[str, Work]
    ratios: Sequence[Ratio]
    reset: Work = field(default=lambda: None)
    slow: Mapping[str, int] = field(default_factory=dict)
    least: int = 0
    facts: Callable[[], Sequence[Fact]] = field(default=lambda: ())
    curve: Curve | None = None

    def rounds(self, repeats: int) -> Iterator[tuple[int, str]]:
        """Yield who runs when; round 0 only warms up, and each round begins with another one."""
        names = list(self.contenders)
        for turn in range(max(repeats, self.least) + 1):
            first = turn % len(names)
            for name in names[first:] + names[:first]:
                if name not in self.slow or 0 < turn <= self.slow[name]:
                    yield turn, name


@dataclass(frozen=True, slots=True)
class Timing:
    """The seconds of one contender."""

    seconds: tuple[float, ...]

    @property
    def runs(self) -> int:
        """Tell how often it ran, the round that warms up not counted."""
        return len(self.seconds)

    @property
    def median(self) -> float:
        """Return the middle one: of one run that run itself, of two what lies between them."""
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """Return the distance from best to worst, as a share of the median."""
        return (max(self.seconds) - min(self.seconds)) / self.median


def measure(comparison: Comparison, repeats: int, tick: Callable[[], None]) -> dict[str, Timing]:
    """Run all contenders in turn, ``repeats`` times; the first round only warms up."""
    seconds: dict[str, list[float]] = {name: [] for name in comparison.contenders}
    for turn, name in comparison.rounds(repeats):
        comparison.reset()
        began = time.perf_counter()
        told = comparison.contenders[name]()
        if turn:
            seconds[name].append(time.perf_counter() - began if told is None else told)
        tick()
    return {name: Timing(tuple(found)) for name, found in seconds.items()}


def report(comparison: Comparison, timings: Mapping[str, Timing]) -> dict[str, Any]:
    """Put it in the shape that machines compare."""
    ratios: dict[str, dict[str, Any]] = {}
    facts = comparison.facts()
    for ratio in comparison.ratios:
        of, to = timings[ratio.of], timings[ratio.to]
        ratios[ratio.name] = _verdict(of.median / to.median, ratio.at_most, ratio.at_least)
        ratios[ratio.name]["best"] = round(min(of.seconds) / min(to.seconds), 3)
    held = {name for name, ratio in ratios.items() if ratio["holds"]}
    for ratio in comparison.ratios:
        if ratio.or_else in held and not ratios[ratio.name]["holds"]:
            ratios[ratio.name] |= {"holds": True, "instead": ratio.or_else}
    for fact in facts:
        if fact.at_most is not None:
            ratios[fact.name] = _verdict(fact.value, fact.at_most, None) | {"counted": True}
    return {
        "name": comparison.name,
        "what": comparison.what,
        "load": os.getloadavg(),
        "contenders": {
            name: {
                "runs": timing.runs,
                "median": timing.median,
                "spread": round(timing.spread, 3),
                "seconds": timing.seconds,
            }
            for name, timing in timings.items()
        },
        "facts": {fact.name: round(fact.value, 3) for fact in facts},
        "ratios": ratios,
        "curve": comparison.curve and asdict(comparison.curve),
    }


def _verdict(value: float, at_most: float | None, at_least: float | None) -> dict[str, Any]:
    holds = (at_most is None or value <= at_most) and (at_least is None or value >= at_least)
    return {
        "value": round(value, 3),
        "target": at_least if at_most is None else at_most,
        "kind": "at least" if at_least is not None else "at most",
        "holds": holds,
    }


def machine() -> dict[str, object]:
    """Describe where it was measured."""
    return {
        "python": sys.version.split()[0],
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
    }
