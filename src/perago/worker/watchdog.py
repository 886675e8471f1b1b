"""Looks at every executor now and then: memory, signs of life, wear; decides by the protocol."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from perago.errors import RuntimeConfigError
from perago.ports import Clock
from perago.process import memory
from perago.process.reports import ExecutorState, WatchedExecutors
from perago.protocol.watch import ExecutorSample, HealthVerdict, Limits, judge
from perago.settings import Settings

START_SECONDS: Final = 120.0
"""How long an executor may take to import the task modules."""
_SOON_SECONDS: Final = 1.0


class Watchdog:
    """Remembers how big each executor was at first and is now."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._limits = Limits(
            stuck_after_seconds=settings.stuck_after_seconds,
            start_seconds=max(START_SECONDS, settings.stuck_after_seconds),
            max_bytes=memory.ceiling(settings.executor_max_bytes),
            max_attempts=settings.executor_max_attempts,
        )
        self._clock = clock
        self._first: dict[str, int] = {}
        self._now: dict[str, int] = {}
        self._measured: dict[str, float] = {}

    def bytes_of(self, executor_id: str) -> int | None:
        """Return what was last measured."""
        return self._now.get(executor_id)

    def rounds(
        self, executors: WatchedExecutors
    ) -> Iterator[tuple[ExecutorState, HealthVerdict, str]]:
        """Look at all of them; yield those about which something is to be done, and why."""
        found = executors.look()
        self._forget({seen.executor_id for seen in found})
        for seen in found:
            self._measure(seen)
            verdict = self._judge(seen)
            if verdict is not HealthVerdict.KEEP:
                yield seen, verdict, self._why(seen, verdict)

    def worn_out(self, executors: WatchedExecutors, executor_id: str) -> bool:
        """Return whether an executor that has just become idle shall be replaced."""
        for seen in executors.look():
            if seen.executor_id == executor_id:
                if self._clock.monotonic() - self._measured.get(executor_id, 0.0) > _SOON_SECONDS:
                    self._measure(seen)
                return self._judge(seen) is HealthVerdict.RECYCLE
        return False

    def _judge(self, seen: ExecutorState) -> HealthVerdict:
        now = self._clock.monotonic()
        sight = ExecutorSample(
            ready=seen.ready,
            busy=bool(seen.execution_id),
            age_seconds=now - seen.born,
            silent_seconds=now - seen.heard,
            attempts=seen.attempts,
            bytes=self._now.get(seen.executor_id),
            first_bytes=self._first.get(seen.executor_id),
        )
        return judge(sight, self._limits)

    def _measure(self, seen: ExecutorState) -> None:
        """Measure a busy executor each time, one that never worked once: it does not grow."""
        if not seen.pid or not seen.ready:
            return
        if seen.executor_id in self._now and not seen.attempts:
            return
        size = memory.bytes_of(seen.pid)
        if size is not None:
            self._measured[seen.executor_id] = self._clock.monotonic()
            self._now[seen.executor_id] = size
            self._first.setdefault(seen.executor_id, size)

    def _forget(self, living: set[str]) -> None:
        for kept in (self._first, self._now):
            for executor_id in kept.keys() - living:
                del kept[executor_id]
        for executor_id in self._measured.keys() - living:
            del self._measured[executor_id]

    def _why(self, seen: ExecutorState, verdict: HealthVerdict) -> str:
        if verdict is HealthVerdict.TOO_BIG:
            size, most = self._now.get(seen.executor_id, 0), self._limits.max_bytes or 0
            return (
                f"executor killed: it took {size >> 20} MB of memory, more than the {most >> 20} MB"
                " allowed; use less, or raise PERAGO_EXECUTOR_MAX_MEMORY"
            )
        if verdict is HealthVerdict.STUCK:
            return (
                f"executor killed: no sign of life for {self._limits.stuck_after_seconds:g} s;"
                " let other threads run, or raise PERAGO_STUCK_AFTER"
            )
        return str(verdict.value)

    def never_ready(self) -> RuntimeConfigError:
        """Build the error for executors that do not come up."""
        return RuntimeConfigError(
            f"an executor was not ready after {self._limits.start_seconds:g} seconds",
            remedy="import the task modules by hand and see what takes so long",
        )
