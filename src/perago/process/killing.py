"""Dying on purpose, to show that it does no harm.

``PERAGO_KILL_AT=<step>:<retry>:<point>`` makes an executor kill itself with SIGKILL when that
attempt reaches that point of its journal. Unset, it costs nothing.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass

from perago.errors import RuntimeConfigError
from perago.ports import Journal
from perago.protocol.points import POINTS
from perago.protocol.values import Claim

VARIABLE = "PERAGO_KILL_AT"
_LAST_WORDS_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class KillAt:
    """Which attempt dies, and where."""

    step: str
    retry_count: int
    point: str

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> KillAt | None:
        """Read the variable; None when it is not set."""
        text = environ.get(VARIABLE, "")
        if not text:
            return None
        step, _, rest = text.partition(":")
        retry, _, point = rest.partition(":")
        if not step or not retry.isdecimal() or point not in POINTS:
            raise RuntimeConfigError(
                f"{VARIABLE} is {text!r}",
                remedy=f"write <step>:<retry>:<point>, a point being one of {', '.join(POINTS)}",
            )
        return cls(step, int(retry), point)

    def journal(self, journal: Journal, claim: Claim) -> Journal:
        """Wrap the journal of the chosen attempt; leave all others alone."""
        attempt = claim.attempt
        if (attempt.reference_task_name, attempt.retry_count) != (self.step, self.retry_count):
            return journal
        return _Deadly(journal, self.point)


class _Deadly:
    """A journal that ends its process at one point."""

    def __init__(self, inner: Journal, point: str) -> None:
        self._inner = inner
        self._point = point

    def event(self, name: str, /, **facts: object) -> None:
        """Record, then die if this is the point."""
        self._inner.event(name, **facts)
        if name == self._point:
            time.sleep(_LAST_WORDS_SECONDS)  # Messages travel together: let the last ones go.
            os.kill(os.getpid(), signal.SIGKILL)

    def progress(self, phase: str, done: int, total: int) -> None:
        """Pass on."""
        self._inner.progress(phase, done, total)
