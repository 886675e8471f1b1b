"""A million objects compared with a million others: by Spark, and by one process alone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.comparison import Comparison, Fact, Options, Work

PYTHON_LIMIT_MB = 200
HEAP_LIMIT_MB = 512
WAYS = {"spark": "spark", "python, both held": "held", "python, streams merged": "merged"}


@contextmanager
def comparison(_: Options) -> Iterator[Comparison]:
    """Run each way in a process of its own; the listings are computed, nobody stores them."""
    peaks: dict[str, float] = {}

    def worker(way: str) -> Work:
        def work() -> float:
            done = subprocess.run(
                [sys.executable, "-m", "bench.prefixes_worker", way],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
                cwd=Path(__file__).parent.parent,
            )
            told = json.loads(done.stdout)
            for name, value in told["peaks"].items():
                peaks[name] = max(value, peaks.get(name, 0.0))
            return float(told["seconds"])

        return work

    yield Comparison(
        name="prefixes",
        what="the diff of two listings of a million objects, simulated at the port",
        contenders={name: worker(way) for name, way in WAYS.items()},
        ratios=[],
        slow=dict.fromkeys(WAYS, 3),
        facts=lambda: [
            Fact(f"prefixes: {name}", value, at_most=_limit(name))
            for name, value in sorted(peaks.items())
        ],
    )


def _limit(name: str) -> float | None:
    if name.startswith("spark, driver's Python"):
        return PYTHON_LIMIT_MB
    return HEAP_LIMIT_MB if name.startswith("spark, JVM heap") else None
