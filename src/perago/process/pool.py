"""A pool of executor processes: spawned, reused, watched, killed and reaped by one owner."""

from __future__ import annotations

import atexit
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum
from multiprocessing import connection
from pathlib import Path
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from typing import Final, Self

from perago.errors import PeragoError, RuntimeConfigError, UsageError
from perago.process import messages
from perago.process.lines import LineReader
from perago.process.reports import (
    Died,
    ExecutorState,
    Finished,
    Make,
    Message,
    Output,
    Report,
    StartFailed,
)
from perago.process.slot import ExecutorProcess, Recipe, Slot, spawn
from perago.protocol.outcome import Outcome, describe
from perago.protocol.restart import backoff_seconds, deaths_in_a_row
from perago.protocol.values import Claim, Status

DEATHS_BEFORE_READY: Final = 3
"""An executor that dies this often before it is ready will not do better the next time."""


LAST_SECONDS: Final = 2.0


class Death(Enum):
    """Marks what becomes readable when a process has ended."""

    SENTINEL = "sentinel"


class ProcessPool:
    """Up to ``size`` executor processes; see :class:`~perago.process.reports.Executors`.

    Executors start when they are wanted and are kept. One that dies is replaced with back-off
    (W5); one that was killed on purpose is replaced at once.
    """

    def __init__(
        self,
        make: Make,
        size: int,
        *,
        capture_output: bool = False,
        lock_directory: Path | None = None,
    ) -> None:
        if size < 1:
            raise UsageError(f"a pool of {size} executors cannot work", remedy="use at least one")
        self._recipe = Recipe(make, capture_output, lock_directory)
        self._slots = [Slot(number) for number in range(1, size + 1)]
        self._wanted = 0
        self._deaths_before_ready = 0
        self._reports: list[Report] = []
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._selector = DefaultSelector()
        self._selector.register(self._wake_read, EVENT_READ, (None, None))
        self._closed = False
        # multiprocessing joins its children when Python exits; ours only end when told to.
        atexit.register(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def idle(self) -> tuple[str, ...]:
        return tuple(executor.executor_id for executor in self._executors() if executor.idle)

    @property
    def pids(self) -> tuple[int, ...]:
        """Return the process ids of all executors."""
        return tuple(executor.process.pid or 0 for executor in self._executors())

    def want(self, count: int) -> None:
        self._wanted = min(count, len(self._slots))
        self._fill()

    def submit(self, claim: Claim, executor_id: str) -> None:
        executor = next(
            (found for found in self._executors() if found.executor_id == executor_id), None
        )
        if executor is None or not executor.idle:
            raise UsageError(f"executor {executor_id} is not idle", remedy="take one of pool.idle")
        try:
            written = messages.encode(claim)
        except (TypeError, ValueError, RecursionError) as error:
            outcome = Outcome(Status.FAILED, reason=f"input: {describe(error)}")
            self._reports.append(Finished(executor_id, claim.execution_id, outcome))
            return
        executor.execution_id = claim.execution_id
        executor.attempts += 1
        executor.heard = time.monotonic()
        self._send(executor, written)

    def poll(self, timeout_seconds: float) -> list[Report]:
        self._fill()
        if not self._reports:
            self._listen(self._patience(timeout_seconds))
        reports, self._reports = self._reports, []
        return reports

    def kill(self, execution_id: str) -> bool:
        for slot in self._slots:
            executor = slot.executor
            if executor is not None and execution_id and executor.execution_id == execution_id:
                self._end(slot)
                return True
        return False

    def cancel(self, execution_id: str) -> bool:
        for executor in self._executors():
            if execution_id and executor.execution_id == execution_id:
                self._send(executor, messages.encode(messages.Cancel(execution_id)))
                return True
        return False

    def end(self, executor_id: str) -> bool:
        for slot in self._slots:
            if slot.executor is not None and slot.executor.executor_id == executor_id:
                self._end(slot)
                return True
        return False

    def look(self) -> list[ExecutorState]:
        return [
            ExecutorState(
                executor_id=executor.executor_id,
                number=executor.number,
                pid=executor.process.pid or 0,
                ready=executor.ready,
                execution_id=executor.execution_id,
                born=executor.born,
                heard=executor.heard,
                attempts=executor.attempts,
            )
            for executor in self._executors()
        ]

    def wake(self) -> None:
        with suppress(OSError):  # full: it is awake already; closed: nobody sleeps
            os.write(self._wake_write, b"!")

    def close(self, grace_seconds: float = 0.0) -> None:
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        deadline = time.monotonic() + grace_seconds
        while self._busy() and (left := deadline - time.monotonic()) > 0:
            self._listen(left)
        for slot in self._slots:
            self._end(slot)
        self._selector.close()
        os.close(self._wake_read)
        os.close(self._wake_write)

    # --- starting ------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Start what is wanted; a place that waits out its back-off is not passed over."""
        now = time.monotonic()
        taken = [slot for slot in self._slots if slot.executor or slot.start_at > now]
        free = [slot for slot in self._slots if slot not in taken]
        for slot in free[: max(0, self._wanted - len(taken))]:
            self._watch(slot, spawn(self._recipe, slot.number, now))

    def _patience(self, timeout_seconds: float) -> float:
        """Wait no longer than until the next executor may be started."""
        if sum(1 for _ in self._executors()) >= self._wanted:
            return timeout_seconds
        now = time.monotonic()
        waits = [slot.start_at - now for slot in self._slots if slot.start_at > now]
        return min([timeout_seconds, *waits])

    # --- listening -----------------------------------------------------------------------------

    def _listen(self, timeout_seconds: float) -> None:
        """Wait for anything to happen, and take it in; a death is looked at last."""
        ready = [
            (*key.data, mask) for key, mask in self._selector.select(max(0.0, timeout_seconds))
        ]
        for slot, source, mask in ready:
            if slot is None:
                _swallow(self._wake_read)
            elif source is not Death.SENTINEL:
                if mask & EVENT_WRITE and slot.executor is not None:
                    self._send(slot.executor)
                if mask & EVENT_READ:
                    self._hear(slot, source)
        for slot, source, _ in ready:
            # Whoever sits there now may be another one: the dead was reaped while we listened.
            if source is Death.SENTINEL and slot.executor and _has_ended(slot.executor):
                self._died(slot)

    def _watch(self, slot: Slot, executor: ExecutorProcess) -> None:
        slot.executor = executor
        self._selector.register(executor.channel, EVENT_READ, (slot, None))
        self._selector.register(executor.process.sentinel, EVENT_READ, (slot, Death.SENTINEL))
        for stream in executor.streams:
            self._selector.register(stream.pipe, EVENT_READ, (slot, stream))

    def _forget(self, executor: ExecutorProcess) -> None:
        pipes = [stream.pipe.fileno() for stream in executor.streams]
        for source in (executor.process.sentinel, executor.channel.fileno(), *pipes):
            with suppress(KeyError):  # a stream that has ended is forgotten already
                self._selector.unregister(source)

    def _hear(self, slot: Slot, stream: LineReader | None) -> None:
        """Take what one pipe has; the end of the channel is the end of the executor."""
        executor = slot.executor
        if executor is None:
            return
        if stream is not None:
            self._lines(executor, stream.name, stream.read())
            if stream.at_end:
                self._selector.unregister(stream.pipe)
            return
        self._take_all(slot, executor)
        if executor.channel.at_end and slot.executor is executor:
            # It is on its way out: let it, so that the exit code is its own.
            connection.wait([executor.process.sentinel], LAST_SECONDS)
            self._died(slot)

    def _take_all(self, slot: Slot, executor: ExecutorProcess) -> None:
        """Take the whole messages that are there; who sends anything else is ended."""
        try:
            for data in executor.channel.receive():
                if slot.executor is executor:
                    self._take(slot, executor, data)
        except messages.BadMessageError as error:
            self._bury(slot, executor, f"it sent what is not a message: {error}")

    def _send(self, executor: ExecutorProcess, message: bytes | None = None) -> None:
        """Send without waiting; what the line does not take now goes when it does."""
        with suppress(OSError):  # It has just died: its sentinel says so at the next poll.
            if message is None:
                executor.channel.flush()
            else:
                executor.channel.send(message)
        key = self._selector.get_key(executor.channel)
        wanted = EVENT_READ | (EVENT_WRITE if executor.channel.unsent else 0)
        if key.events != wanted:
            self._selector.modify(executor.channel, wanted, key.data)

    def _take(self, slot: Slot, executor: ExecutorProcess, data: bytes) -> None:
        executor.heard = time.monotonic()
        match messages.decode(data):
            case messages.Ready():
                executor.ready = True
                self._deaths_before_ready = 0
            case messages.ReceivedMessages(execution_id, bodies):
                self._reports.extend(
                    Message(executor.executor_id, execution_id, body) for body in bodies
                )
            case messages.Done(execution_id, outcome, last):
                # Lines first: what an attempt printed belongs before its end.
                for stream in executor.streams:
                    self._lines(executor, stream.name, stream.drain())
                executor.execution_id = ""
                self._reports.append(Finished(executor.executor_id, execution_id, outcome))
                if last:
                    self._end(slot)
            case messages.StartFailure(error, detail):
                self._end(slot)
                self._give_up(error, detail)

    def _lines(self, executor: ExecutorProcess, stream: str, lines: list[str]) -> None:
        self._reports.extend(
            Output(executor.executor_id, executor.execution_id, stream, line) for line in lines
        )

    # --- ending --------------------------------------------------------------------------------

    def _died(self, slot: Slot) -> None:
        """Reap an executor that ended by itself, after taking in everything it still said."""
        executor = slot.executor
        if executor is None:
            return
        executor.kill()
        self._take_all(slot, executor)
        if slot.executor is None:
            return  # its last word was that it cannot start, or was none
        self._bury(slot, executor)

    def _bury(self, slot: Slot, executor: ExecutorProcess, why: str = "") -> None:
        """Reap it, tell how it ended, and have the next one wait (W5)."""
        lived = time.monotonic() - executor.born
        how = describe_exit(self._end(slot))
        how = why or how
        slot.deaths = deaths_in_a_row(slot.deaths, lived)
        slot.start_at = time.monotonic() + backoff_seconds(slot.deaths)
        self._reports.append(Died(executor.executor_id, executor.execution_id, how))
        if not executor.ready:
            self._deaths_before_ready += 1
            if self._deaths_before_ready >= DEATHS_BEFORE_READY:
                self._give_up(_never_ready(how), "")

    def _end(self, slot: Slot) -> int | None:
        executor, slot.executor = slot.executor, None
        if executor is None:
            return None
        self._forget(executor)
        executor.kill()
        code = executor.reap(self._recipe.lock_directory)
        for stream in executor.streams:
            self._lines(executor, stream.name, stream.drain())
            stream.close()
        return code

    def _give_up(self, error: PeragoError, detail: str) -> None:
        self._wanted = 0
        self._reports.append(StartFailed(error, detail))

    def _executors(self) -> Iterator[ExecutorProcess]:
        return (slot.executor for slot in self._slots if slot.executor is not None)

    def _busy(self) -> bool:
        return any(executor.execution_id for executor in self._executors())


def describe_exit(code: int | None) -> str:
    """Return how a process ended."""
    if code is None:
        return "did not end after SIGKILL"
    if code < 0:
        try:
            return f"killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"killed by signal {-code}"
    return f"exit code {code}"


def _has_ended(executor: ExecutorProcess) -> bool:
    return bool(connection.wait([executor.process.sentinel], 0))


def _never_ready(how: str) -> PeragoError:
    return RuntimeConfigError(
        f"an executor ended {DEATHS_BEFORE_READY} times before it was ready ({how})",
        remedy="import the task module by hand; it ends the interpreter",
    )


def _swallow(descriptor: int) -> None:
    with suppress(OSError):
        while os.read(descriptor, 4096):
            pass
