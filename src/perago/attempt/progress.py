"""Where an attempt stands: phases with times, progress, and the undoing that may fail quietly."""

from __future__ import annotations

import math
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from perago.errors import StaleAttemptError
from perago.ports import Clock, Journal
from perago.protocol import events
from perago.protocol.outcome import describe, sendable
from perago.protocol.program import LogEvent, MetricEvent, ProgramEvent, ProgressEvent
from perago.protocol.values import Phase

_UNTIL_PUBLISHED = frozenset(list(Phase)[: list(Phase).index(Phase.CLEAN_STAGING)])

_LONGEST_TRACE = 100_000


def trace_of(error: BaseException) -> str:
    """Format a traceback, cut in the middle; never fails, whatever an author's error does."""
    try:
        text = sendable("".join(traceback.format_exception(error)))
    except BaseException:  # noqa: BLE001 - an author's __str__ may raise anything
        text = f"{describe(error)}\n"
    if len(text) <= _LONGEST_TRACE:
        return text
    half = _LONGEST_TRACE // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters ...\n{text[-half:]}"


class Meter:
    """Called with bytes as they move; knows afterwards how fast they did."""

    def __init__(self, moved: Callable[[int], None], clock: Clock) -> None:
        self._moved = moved
        self._clock = clock
        self._started = clock.monotonic()
        self._done = 0

    def __call__(self, count: int) -> None:
        """Count; raises what stops the transfer."""
        self._done += count
        self._moved(self._done)

    def pace(self) -> tuple[float, int]:
        """Return the seconds since the meter was made, and the bytes that moved in each."""
        seconds = self._clock.monotonic() - self._started
        return round(seconds, 6), round(self._done / seconds) if seconds > 0 else 0


class AttemptProgress:
    """Writes the journal of one execution and remembers the phase it is in."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        cancelled: Callable[[], bool] = lambda: False,
        seconds: float = math.inf,
    ) -> None:
        self.current = Phase.INPUT
        self._journal = journal
        self._log_decides = True
        self._clock = clock
        self._cancelled = cancelled
        self._deadline = clock.monotonic() + seconds
        self._aside = 0.0

    def event(self, event: events.Event) -> None:
        """Record a point; a journal that cannot is a failure only while it may be one."""
        try:
            self._journal.event(event)
        except Exception:
            if self._log_decides:
                raise

    def ignore_log_failures(self) -> None:
        """Go on without the log: what is visible stays, is cleaned up after, and is reported."""
        self._log_decides = False

    @contextmanager
    def phase(self, phase: Phase) -> Iterator[None]:
        """Mark a phase; its events are also the named points where tests crash an attempt.

        An attempt that is known to be lost enters no further phase up to publish (W4).
        """
        self.current = phase
        if phase in _UNTIL_PUBLISHED:
            self.refuse_lost()
        self.event(events.PhaseBegan(phase))
        started = self._clock.monotonic() - self._aside
        yield
        took = self._clock.monotonic() - self._aside - started
        self.event(events.PhaseEnded(phase, round(took, 6)))

    @contextmanager
    def starting_spark(self) -> Iterator[None]:
        """Mark the start of a JVM; its time does not count as that of the phase it happens in."""
        self.event(events.SparkStarting())
        started = self._clock.monotonic()
        try:
            yield
        finally:
            took = self._clock.monotonic() - started
            self._aside += took
        self.event(events.SparkStarted(round(took, 6)))

    def clean(self, phase: Phase, failure: str, action: Callable[[], None]) -> None:
        """Undo one thing in a phase of its own (steps 13, 14)."""

        def undo() -> None:
            with self.phase(phase):
                action()

        self.quietly(failure, undo)

    def quietly(self, failure: str, action: Callable[[], None]) -> None:
        """Do something whose failure is logged and never changes the result."""
        try:
            action()
        except Exception as error:  # noqa: BLE001 - whatever it is, the result stands
            self.event(events.Warned(failure, describe(error)))

    def meter(self, phase: Phase, total: int) -> Meter:
        """Count moved bytes for whoever watches; stop when they are no longer wanted."""

        def moved(done: int) -> None:
            self.refuse_lost()
            if self._clock.monotonic() > self._deadline:
                raise StaleAttemptError(
                    f"the time of the attempt was over in phase {phase}",
                    remedy="raise timeout.seconds of the task, or move fewer bytes",
                )
            self._journal.progress(phase, done, total)

        return Meter(moved, self._clock)

    def left(self) -> float:
        """Return the seconds that the attempt has left; infinite without a limit."""
        return self._deadline - self._clock.monotonic()

    def refuse_lost(self) -> None:
        """Raise when the attempt is known to be lost (W4)."""
        if self._cancelled():
            raise StaleAttemptError(
                "the attempt was lost while it was running",
                remedy="nothing to do: nothing was published and the engine decides what runs next",
            )

    def dropped(self, paths: Sequence[str]) -> None:
        """Record what was taken for a leftover of Spark and is not published."""
        self.event(events.LeftoversRemoved(len(paths), tuple(paths)))

    def told(self, event: ProgramEvent) -> None:
        """Take what a program says on the way (Q6)."""
        match event:
            case ProgressEvent(done, total):
                self._journal.progress(self.current, done, total)
            case MetricEvent(kind, name, value, labels):
                self.measured(kind, name, value, labels)
            case LogEvent(level, message):
                stream = sys.stderr if level in {"warning", "error"} else sys.stdout
                stream.write(f"{level}: {sendable(message)}\n")

    def measured(self, kind: str, name: str, value: float, labels: Mapping[str, str]) -> None:
        """Take a sample of the author's own metrics; what they name it is text from here on."""
        named = {str(key): sendable(str(text)) for key, text in dict(labels).items()}
        self.event(events.MetricRecorded(kind, sendable(str(name)), value, named))
