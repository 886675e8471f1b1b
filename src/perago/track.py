"""Where an attempt stands: phases with times, progress, and the undoing that may fail quietly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from perago.errors import PeragoError
from perago.ports import Clock, Journal
from perago.protocol.outcome import describe
from perago.protocol.values import Phase


class Track:
    """Writes the journal of one execution and remembers the phase it is in."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self.event = journal.event
        self.current = Phase.INPUT
        self._journal = journal
        self._clock = clock

    @contextmanager
    def phase(self, phase: Phase) -> Iterator[None]:
        """Mark a phase; its events are also the named points where tests crash an attempt."""
        self.current = phase
        self.event(f"before {phase}")
        started = self._clock.monotonic()
        yield
        self.event(f"after {phase}", seconds=round(self._clock.monotonic() - started, 6))

    def clean(self, phase: Phase, failure: str, action: Callable[[], None]) -> None:
        """Undo one thing; a failure is logged and never changes the result (steps 13, 14)."""
        try:
            with self.phase(phase):
                action()
        except (PeragoError, OSError) as error:
            self.event("warning", text=failure, why=describe(error))

    def meter(self, phase: Phase, total: int) -> Callable[[int], None]:
        """Count moved bytes for whoever watches."""
        done = 0

        def advance(count: int) -> None:
            nonlocal done
            done += count
            self._journal.progress(phase, done, total)

        return advance

    def measured(self, kind: str, name: str, value: float, labels: Mapping[str, str]) -> None:
        """Take a sample of the author's own metrics."""
        self.event("metric", kind=kind, name=name, value=value, labels=dict(labels))
