"""Faults are counted where they are injected; a case whose fault did not happen fails.

An injector says what it will do (``expect``) or what it has just done (``inject``). When the body
of a test is over, everything that was expected must have happened. ``PERAGO_INJECTION=off`` keeps
every injector from acting, so that one run shows which cases would not notice.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

OFF = os.environ.get("PERAGO_INJECTION") == "off"
Count = Callable[[], int]


@dataclass(eq=False)
class Case:
    """One test that runs: what shall happen to it, and what has."""

    expected: dict[str, Count] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)
    control: str = ""
    """Why nothing is injected here, where that is what the test is for."""

    @property
    def missing(self) -> list[str]:
        """Name what was expected and did not happen."""
        return [what for what, count in self.expected.items() if not count()]

    @property
    def faults(self) -> int:
        """Count the faults that happened, each kind once."""
        return len(self.done) + sum(1 for count in self.expected.values() if count())


_sinks: list[Case] = []
_lock = threading.Lock()


def expect(what: str, count: Count) -> None:
    """Require that something has happened when the case is over."""
    with _lock:
        if _sinks:
            _sinks[-1].expected[_unused(what, _sinks[-1].expected)] = count


def inject(what: str, action: Callable[[], object]) -> None:
    """Do something harmful now, and count it."""
    with _lock:
        case = _sinks[0] if _sinks else Case()
        case.expected.setdefault(what, lambda: case.done[what])
    if not OFF:
        action()
        case.done[what] += 1


def control(why: str) -> None:
    """Say that the running test is undisturbed on purpose; it is no fault case."""
    with _lock:
        if _sinks:
            _sinks[0].control = why


@contextmanager
def case() -> Iterator[Case]:
    """Collect what is injected; an inner one keeps it from the test that happens to run."""
    found = Case()
    _sinks.append(found)
    try:
        yield found
    finally:
        _sinks.remove(found)


def adopt(other: Case) -> None:
    """Make the faults of a workflow, which may have been begun ahead, those of the running test."""
    with _lock:
        if _sinks:
            _sinks[0].expected |= other.expected


def check(found: Case, *, wanted: bool) -> None:
    """Fail when a fault is missing; ``wanted``: also when there was none at all."""
    assert not found.missing, f"these faults never happened: {', '.join(found.missing)}"
    if wanted and not found.control:
        assert found.faults, "no fault was injected in this case"


def _unused(what: str, taken: dict[str, Count]) -> str:
    number = 2
    name = what
    while name in taken:
        name, number = f"{what} ({number})", number + 1
    return name
