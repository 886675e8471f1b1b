"""Fetches claims: batches as big as there are idle executors, ever less often while none come."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from perago.brokers.conductor.backoff import Backoff
from perago.brokers.conductor.client import ConductorClient
from perago.brokers.conductor.mapping import claim_of, refusal_of
from perago.errors import BrokerError, PeragoError
from perago.ports import Clock
from perago.protocol.outcome import describe
from perago.protocol.values import Attempt, Claim
from perago.protocol.worker_events import WorkerEvent
from perago.worker.claim_queue import ClaimQueue

CALL_SECONDS: Final = 10.0
HUNG_SECONDS: Final = 3 * CALL_SECONDS
"""A request that has a timeout and does not come back for so long has lost its thread."""
BACK_SECONDS: Final = 1
"""When a claim that was given back may be polled again. The server reads, changes and writes a task
without a lock: a heartbeat still under way would make the next delivery look SCHEDULED again."""
_PATIENCE_SECONDS: Final = 5.0

OnClaim = Callable[[Claim], None]
Note = Callable[[WorkerEvent, Mapping[str, object]], None]


@dataclass(slots=True)
class TaskType:
    """One kind of task to poll for, and when it is due."""

    name: str
    backoff: Backoff
    due: float = 0.0
    polled: float = 0.0


@dataclass(frozen=True, slots=True)
class Asking:
    """Who polls, for what, and how often."""

    names: Sequence[str]
    worker_id: str
    domain: str
    backoff: Backoff


class Poller:
    """One thread that polls every task type in turn; the supervisor replaces one that hangs."""

    def __init__(
        self, client: ConductorClient, asking: Asking, claim_queue: ClaimQueue, clock: Clock,
        on_claim: OnClaim, note: Note,
    ) -> None:  # fmt: skip
        self._client = client
        self._asking = asking
        self._claim_queue = claim_queue
        self._clock = clock
        self._on_claim = on_claim
        self._note = note
        self._types = [TaskType(name, asking.backoff) for name in asking.names]
        self._stopped = False
        self._asked_at: float | None = None
        self.polls = 0
        self.answered_at = 0.0
        self.problem = ""
        self._thread = threading.Thread(target=self._run, name="perago-poller", daemon=True)
        self._thread.start()

    @property
    def hung(self) -> bool:
        """Return whether a request is long past all its timeouts, or the thread is gone."""
        asked = self._asked_at
        late = asked is not None and self._clock.monotonic() - asked > HUNG_SECONDS
        return late or not (self._thread.is_alive() or self._stopped)

    def stop(self) -> None:
        """Poll no more; what a poll under way still brings is given back."""
        self._stopped = True

    def join(self, timeout_seconds: float) -> bool:
        """Wait for the thread; False when it is still in a request."""
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    # --- the thread ----------------------------------------------------------------------------

    def _run(self) -> None:
        while not (self._stopped or self._claim_queue.closed):
            if not self._claim_queue.demand(_PATIENCE_SECONDS):
                continue
            now = self._clock.monotonic()
            kind = min(self._types, key=lambda kind: (max(kind.due, now), kind.polled))
            if kind.due > now:
                self._claim_queue.pause(kind.due - now)
                continue
            if wanted := self._claim_queue.demand(0):
                self._poll(kind, wanted)

    def _poll(self, kind: TaskType, wanted: int) -> None:
        self._asked_at = kind.polled = self._clock.monotonic()
        self.polls += 1
        try:
            found = self._client.poll(
                kind.name, self._asking.worker_id, wanted, domain=self._asking.domain
            )
        except Exception as error:  # noqa: BLE001 - whatever a server sends, polling goes on
            self.problem = str(error) if isinstance(error, PeragoError) else describe(error)
            self._note(WorkerEvent.POLL_FAILED, {"task": kind.name, "why": self.problem})
            found = []
        else:
            self.answered_at, self.problem = self._clock.monotonic(), ""
            self._note(
                WorkerEvent.POLLED, {"task": kind.name, "wanted": wanted, "found": len(found)}
            )
        finally:
            self._asked_at = None
        kind.backoff = kind.backoff.after_work() if found else kind.backoff.after_nothing()
        kind.due = self._clock.monotonic() + kind.backoff.wait_seconds
        if found:
            self._deliver(kind.name, found)

    def _deliver(self, name: str, found: Sequence[Mapping[str, Any]]) -> None:
        claims: list[Claim] = []
        for task in found:
            try:
                claims.append(_claim(name, task))
            except Exception as error:  # noqa: BLE001 - one bad task must not hide the others
                self._refuse(task, describe(error))
        if self._stopped:
            self._give_back(claims)
            return
        for claim in claims:
            self._on_claim(claim)
        if not self._claim_queue.offer(claims):
            self._give_back(claims)

    def _refuse(self, task: Mapping[str, Any], why: str) -> None:
        """Fail a task that cannot be claimed; left alone it would come back for ever."""
        self._note(WorkerEvent.CLAIM_REFUSED, {"why": why})
        refusal = refusal_of(task, f"input: {why}", self._asking.worker_id)
        if refusal is not None:
            try:
                self._client.update(refusal)
            except PeragoError as error:
                self._note(
                    WorkerEvent.REPORT_FAILED, {"task_id": refusal["taskId"], "why": str(error)}
                )

    def _give_back(self, claims: Sequence[Claim]) -> None:
        for claim in claims:
            give_back(self._client, claim.attempt, self._asking.worker_id, self._note)


def _claim(name: str, task: Mapping[str, Any]) -> Claim:
    claim = claim_of(task, uuid.uuid4().hex)
    if claim.attempt.task_def_name != name:
        raise BrokerError(
            f"Conductor gave a task {claim.attempt.task_def_name!r} for {name!r}",
            remedy="see the server's log",
        )
    return claim


def give_back(client: ConductorClient, attempt: Attempt, worker_id: str, note: Note) -> bool:
    """Return an attempt that was not begun: it is delivered again soon and loses no retry."""
    result = {
        "workflowInstanceId": attempt.workflow_instance_id,
        "taskId": attempt.task_id,
        "status": "IN_PROGRESS",
        "callbackAfterSeconds": BACK_SECONDS,
        "workerId": worker_id,
    }
    try:
        client.update(result)
    except PeragoError as error:
        # It comes back by itself when its response timeout is over.
        note(WorkerEvent.NOT_GIVEN_BACK, {"task_id": attempt.task_id, "why": str(error)})
        return False
    note(WorkerEvent.GIVEN_BACK, {"task_id": attempt.task_id})
    return True
