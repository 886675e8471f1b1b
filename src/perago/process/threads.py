"""The same pool on threads of this process: one store client for all, breakpoints work.

A thread cannot be killed: ``kill`` abandons it, and the broker refuses its report.
"""

from __future__ import annotations

import json
import queue
import threading
import time
import traceback
import uuid
from contextlib import suppress
from typing import Self

from perago.errors import UsageError
from perago.process.executor import as_start_error, run
from perago.process.messages import body_of
from perago.process.reports import Body, ExecutorState, Finished, Make, Message, Report, StartFailed
from perago.protocol.values import Claim
from perago.tasks.cancellation import CancellationToken, holding


class ThreadPool:
    """Up to ``size`` executor threads; see :class:`~perago.process.reports.Executors`."""

    def __init__(self, make: Make, size: int) -> None:
        if size < 1:
            raise UsageError(f"a pool of {size} executors cannot work", remedy="use at least one")
        self._make = make
        self._size = size
        self._threads: dict[str, _ExecutorThread] = {}
        self._inbox: queue.SimpleQueue[Report | None] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def idle(self) -> tuple[str, ...]:
        return tuple(found.executor_id for found in self._threads.values() if found.idle)

    def want(self, count: int) -> None:
        for _ in range(min(count, self._size) - len(self._threads)):
            taken = {thread.number for thread in self._threads.values()}
            number = next(n for n in range(1, self._size + 1) if n not in taken)
            thread = _ExecutorThread(self._make, self._inbox, number)
            self._threads[thread.executor_id] = thread
            thread.start()

    def submit(self, claim: Claim, executor_id: str) -> None:
        thread = self._threads.get(executor_id)
        if thread is None or not thread.idle:
            raise UsageError(f"executor {executor_id} is not idle", remedy="take one of pool.idle")
        thread.execution_id = claim.execution_id
        thread.token = CancellationToken()
        thread.attempts += 1
        thread.claims.put(claim)

    def poll(self, timeout_seconds: float) -> list[Report]:
        reports: list[Report] = []
        with suppress(queue.Empty):
            item = self._inbox.get(timeout=max(0.0, timeout_seconds))
            while True:
                reports.extend(self._taken(item))
                item = self._inbox.get_nowait()
        return reports

    def _taken(self, report: Report | None) -> list[Report]:
        """Drop what an abandoned thread still says."""
        match report:
            case None:
                return []
            case Finished(executor_id) | Message(executor_id):
                if executor_id not in self._threads:
                    return []
                if isinstance(report, Finished):
                    self._threads[executor_id].execution_id = ""
            case _:
                pass
        return [report]

    def kill(self, execution_id: str) -> bool:
        thread = self._running(execution_id)
        return thread is not None and self.end(thread.executor_id)

    def cancel(self, execution_id: str) -> bool:
        thread = self._running(execution_id)
        if thread is not None:
            thread.token.cancel()
        return thread is not None

    def end(self, executor_id: str) -> bool:
        """Abandon a thread: it stops after what it does now, and is not heard any more."""
        thread = self._threads.pop(executor_id, None)
        if thread is not None:
            thread.token.cancel()
            thread.claims.put(None)
            self.want(len(self._threads) + 1)
        return thread is not None

    def look(self) -> list[ExecutorState]:
        now = time.monotonic()  # A thread that does not get its turn keeps us from asking, too.
        return [
            ExecutorState(
                executor_id=thread.executor_id,
                number=thread.number,
                pid=0,
                ready=thread.ready,
                execution_id=thread.execution_id,
                born=thread.born,
                heard=now,
                attempts=thread.attempts,
            )
            for thread in sorted(self._threads.values(), key=lambda thread: thread.number)
        ]

    def wake(self) -> None:
        self._inbox.put(None)

    def close(self, grace_seconds: float = 0.0) -> None:
        deadline = time.monotonic() + grace_seconds
        for thread in self._threads.values():
            thread.claims.put(None)
        for thread in self._threads.values():
            busy = bool(thread.execution_id)
            thread.join(max(0.0, deadline - time.monotonic()) if busy else 1.0)
        self._threads.clear()

    def _running(self, execution_id: str) -> _ExecutorThread | None:
        for thread in self._threads.values():
            if execution_id and thread.execution_id == execution_id:
                return thread
        return None


class _ExecutorThread(threading.Thread):
    def __init__(self, make: Make, inbox: queue.SimpleQueue[Report | None], number: int) -> None:
        self.executor_id = uuid.uuid4().hex[:12]
        super().__init__(name=f"perago-{self.executor_id}", daemon=True)
        self.number = number
        self.token = CancellationToken()
        self.claims: queue.SimpleQueue[Claim | None] = queue.SimpleQueue()
        self.execution_id = ""
        self.ready = False
        self.born = time.monotonic()
        self.attempts = 0
        self._make = make
        self._inbox = inbox

    @property
    def idle(self) -> bool:
        return self.ready and not self.execution_id

    def run(self) -> None:
        try:
            work = self._make(self)
        except BaseException as error:  # noqa: BLE001 - also a SystemExit of a user's module
            self._inbox.put(StartFailed(as_start_error(error), traceback.format_exc()))
            return
        self.ready = True
        self._inbox.put(None)
        while (claim := self.claims.get()) is not None:
            with holding(self.token, whole_process=False):
                outcome = run(work, claim)
            self._inbox.put(Finished(self.executor_id, claim.execution_id, outcome))

    def __call__(self, body: Body) -> None:
        """Say something to the owner of the pool."""
        said = json.loads(body_of(body))  # As it would arrive from a process.
        self._inbox.put(Message(self.executor_id, self.execution_id, said))
