"""Dying or standing still on purpose, to show that it does no harm.

``PERAGO_KILL_AT=<step>:<retry>:<point>`` makes an executor send itself SIGKILL when that attempt
reaches that point of its journal; ``:STOP`` behind the point sends SIGSTOP instead. The second
round of a step in a loop is ``<step>__2``. Several such places are separated by commas. Unset, it
costs nothing. ``PERAGO_KILL_LOG`` names a file to which each of them is written when it is reached,
so that a test can tell that it was.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from signal import Signals
from typing import Final

from perago.errors import RuntimeConfigError
from perago.ports import Journal
from perago.protocol.events import Event
from perago.protocol.points import AMID, POINTS
from perago.protocol.values import Claim

VARIABLE: Final = "PERAGO_KILL_AT"
LOG: Final = "PERAGO_KILL_LOG"
_LAST_WORDS_SECONDS: Final = 0.25
_PLACES: Final = (*POINTS, *AMID)
_STOP: Final = ":STOP"


@dataclass(frozen=True, slots=True)
class End:
    """Where an attempt ends or halts, and by which signal."""

    point: str
    signal: Signals = signal.SIGKILL


@dataclass(frozen=True, slots=True)
class KillAt:
    """Which attempts end, and where; by reference name of the step and retry count."""

    ends: Mapping[tuple[str, int], End]
    log: Path | None = None

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> KillAt | None:
        """Read the variable; None when it is not set."""
        text = environ.get(VARIABLE, "")
        if not text:
            return None
        log = environ.get(LOG, "")
        return cls(dict(_place(one) for one in text.split(",")), Path(log) if log else None)

    def journal(self, journal: Journal, claim: Claim) -> Journal:
        """Wrap the journals of the chosen attempts; leave all others alone."""
        attempt = claim.attempt
        end = self.ends.get((attempt.reference_task_name, attempt.retry_count))
        if end is None:
            return journal
        stop = _STOP if end.signal is signal.SIGSTOP else ""
        place = f"{attempt.reference_task_name}:{attempt.retry_count}:{end.point}{stop}"
        return _Deadly(journal, end, place, self.log)


def _place(text: str) -> tuple[tuple[str, int], End]:
    chosen = signal.SIGSTOP if text.endswith(_STOP) else signal.SIGKILL
    # From its end: the name of a step may have a colon in it.
    step, retry, point = ["", "", *text.removesuffix(_STOP).rsplit(":", 2)][-3:]
    if not step or not retry.isdecimal() or point not in _PLACES:
        raise RuntimeConfigError(
            f"{VARIABLE} is {text!r}",
            remedy=f"write <step>:<retry>:<point>, a point being one of {', '.join(_PLACES)}",
        )
    return (step, int(retry)), End(point, chosen)


class _Deadly:
    """A journal that ends or halts its process at one point, once."""

    def __init__(self, inner: Journal, end: End, place: str, log: Path | None) -> None:
        self._inner = inner
        self._end: End | None = end
        self._place = place
        self._log = log

    def event(self, event: Event) -> None:
        """Record, then die if this is the point."""
        self._inner.event(event)
        self._reach(event.title)

    def progress(self, phase: str, done: int, total: int) -> None:
        """Pass on, then die if this is the transfer."""
        self._inner.progress(phase, done, total)
        self._reach(f"during {phase}")

    def _reach(self, point: str) -> None:
        if (end := self._end) is None or end.point != point:
            return
        self._end = None
        if self._log is not None:
            with self._log.open("a") as log:
                log.write(f"{self._place}\n")
        time.sleep(_LAST_WORDS_SECONDS)  # Messages travel together: let the last ones go.
        os.kill(os.getpid(), end.signal)
