"""How long the tests wait before they call something a hang.

A limit in a test is there so that a hang ends, never to say that something was quick: what is
quick is measured in ``bench/``. Every limit comes from here. It is generous for a quiet machine,
and longer by how much slower this one was when the run began: a fixed piece of work in as many
new processes as there are cores, against what it takes where nothing else runs. One process
measures and the others are told, through ``TESTS_PATIENCE``; set it to have limits of your own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

VARIABLE: Final = "TESTS_PATIENCE"
LARGEST: Final = 10.0
_PROCESSES: Final = min(os.cpu_count() or 1, 4)
_WORK: Final = "n = 0\nfor i in range(300_000): n += i * i"
_QUIET_SECONDS: Final = 0.15
"""What the work takes where nothing else runs."""


def measured() -> float:
    """Measure how much slower than a quiet machine this one is now; 1 when it is not."""
    began = time.monotonic()
    words = [sys.executable, "-I", "-S", "-c", _WORK]
    running = [subprocess.Popen(words) for _ in range(_PROCESSES)]
    for process in running:
        process.wait()
    return factor_of(time.monotonic() - began)


def factor_of(seconds: float) -> float:
    """Say what the work's time means for limits."""
    return min(max(seconds / _QUIET_SECONDS, 1.0), LARGEST)


def _told() -> float:
    """Return the factor of this run; the first process that asks measures it."""
    try:
        return max(float(os.environ[VARIABLE]), 0.1)
    except (KeyError, ValueError):
        os.environ[VARIABLE] = f"{measured():.2f}"
    return float(os.environ[VARIABLE])


FACTOR: Final = _told()


def scaled(seconds: float) -> float:
    """Give something more time where the machine is slower."""
    return seconds * FACTOR


LIMIT: Final = scaled(120)
"""The longest wait for anything that is only a matter of time."""
TEST_SECONDS: Final = 600.0
"""The longest time of one test on a quiet machine; ``conftest.py`` scales it."""


class Deadline:
    """A limit that asks, when it is over, whether the machine became slower on the way."""

    def __init__(self, seconds: float = LIMIT) -> None:
        self._seconds = seconds
        self._until = time.monotonic() + seconds
        self._extended = False

    @property
    def over(self) -> bool:
        """Tell whether it has hung."""
        if time.monotonic() < self._until:
            return False
        slower = 1.0 if self._extended else min(measured() / FACTOR, LARGEST)
        self._extended = True
        self._until += self._seconds * max(slower - 1.0, 0.0)
        return time.monotonic() >= self._until


def until(
    found: Callable[[], T | None], what: str = "", seconds: float = LIMIT, every: float = 0.02
) -> T:
    """Wait for something to be there, or true, and return it."""
    deadline = Deadline(seconds)
    while not (value := found()):
        assert not deadline.over, f"not within {seconds:g} s: {what or found}"
        time.sleep(every)  # between two looks
    return value
