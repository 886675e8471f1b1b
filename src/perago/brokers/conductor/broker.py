"""The ``Broker`` port on Conductor: what an attempt asks and reports."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from perago.brokers.conductor.backoff import Backoff
from perago.brokers.conductor.client import ConductorClient
from perago.brokers.conductor.mapping import holds, result_of, snapshot_of
from perago.errors import (
    BrokerError,
    BrokerUnavailableError,
    NotFoundError,
    PermissionRefusedError,
    StaleAttemptError,
)
from perago.ports import Clock
from perago.protocol.fence import assert_current_attempt_snapshot
from perago.protocol.outcome import Outcome, describe
from perago.protocol.values import Attempt, AttemptSnapshot, Status
from perago.redaction import hidden_outcome, hide

ENDLESS_LEASE_SECONDS = 600.0
"""How long a result is offered for a task whose lease never ends."""
_SENDING = 2 / 3
"""The share of the time that is left for sending; the rest is for reading the task."""
_ASKING = 1 / 4
"""The share of the time in which is asked, before a failure is sent, whether it still counts."""
_LEAST_SECONDS = 1.0
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0
_CANNOT_SAY = (BrokerUnavailableError, PermissionRefusedError, NotFoundError)

Later = Callable[[Callable[[], bool]], None]
"""Takes a question for a better moment: whether the engine took a result."""


class _Settled(Enum):
    """What reading a task says about the result that was sent for it."""

    ACCEPTED = "accepted"
    OPEN = "open"
    LOST = "lost"
    UNKNOWN = "unknown"


class ConductorBroker:
    """The workflow engine, as the attempts of one executor see it."""

    def __init__(
        self,
        client: ConductorClient,
        clock: Clock,
        worker_id: str,
        report_seconds: float = 0.0,
        later: Later | None = None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._worker_id = worker_id
        self._report_seconds = report_seconds or ENDLESS_LEASE_SECONDS
        self._later = later

    def current(self, attempt: Attempt) -> AttemptSnapshot:
        return snapshot_of(attempt, self._client.task(attempt.task_id))

    def standing(self, task_id: str) -> str | None:
        task = self._client.task(task_id)
        return None if task is None else str(task.get("status") or "")

    def report(self, attempt: Attempt, outcome: Outcome) -> bool:
        """Offer the result until it is taken, lost, or the time for it is over (T5).

        The answer to an update says nothing (R2): only the task itself does. When the result was
        answered and names no publication, nothing waits for that, and it may be read later.
        """
        outcome = hidden_outcome(outcome)
        result = result_of(attempt, outcome, self._worker_id)
        deadline = self._deadline()
        # A rerun has the id of the attempt that was lost to it, and a failure would end it (F1).
        if not outcome.completed:
            asking = self._clock.monotonic() + _ASKING * self._report_seconds
            if self._settle(attempt, outcome, asking) is _Settled.LOST:
                return False
        answered = self._send(result, deadline)
        if isinstance(answered, str):
            return self._give_up(attempt, answered)
        if answered and self._later is not None and outcome.completed and outcome.fence is None:
            self._later(lambda: self._settled(attempt, outcome, result, self._deadline()))
            return True
        return self._settled(attempt, outcome, result, deadline)

    def _settled(
        self, attempt: Attempt, outcome: Outcome, result: dict[str, Any], deadline: float
    ) -> bool:
        """Read until it is known; sent again only while the task is this attempt's (P7)."""
        backoff = Backoff(_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS)
        unsure = {_Settled.OPEN, _Settled.UNKNOWN}
        while (settled := self._settle(attempt, outcome, deadline)) in unsure:
            backoff = backoff.after_nothing()
            if self._clock.monotonic() + backoff.wait_seconds >= deadline:
                return False
            self._clock.sleep(backoff.wait_seconds)
            answered = self._send(result, deadline) if settled is _Settled.OPEN else False
            if isinstance(answered, str):
                return self._give_up(attempt, answered)
        return settled is _Settled.ACCEPTED

    def _deadline(self) -> float:
        return self._clock.monotonic() + self._report_seconds

    def _left(self, deadline: float, share: float = 1.0) -> float:
        """Return how long a request may take; what was sent is read back in any case."""
        return max(share * (deadline - self._clock.monotonic()), _LEAST_SECONDS)

    def _send(self, result: dict[str, Any], deadline: float) -> bool | str:
        """Send once; tell whether it was answered, or why the server will never take it."""
        try:
            self._client.update(result, self._left(deadline, _SENDING))
        except _CANNOT_SAY:
            return False  # It may have arrived all the same: the task shows it.
        except (BrokerError, TypeError, ValueError) as error:
            return describe(error)
        return True

    def _settle(self, attempt: Attempt, outcome: Outcome, deadline: float) -> _Settled:
        try:
            task = self._client.task(attempt.task_id, self._left(deadline))
        except (BrokerError, PermissionRefusedError):
            return _Settled.UNKNOWN
        if task is None:
            return _Settled.LOST
        if holds(task, outcome):
            return _Settled.ACCEPTED
        try:
            assert_current_attempt_snapshot(attempt, snapshot_of(attempt, task))
        except StaleAttemptError:
            return _Settled.LOST
        return _Settled.OPEN

    def _give_up(self, attempt: Attempt, refusal: str) -> bool:
        """Return why there is no result, so that the retry need not wait for the lease to end."""
        outcome = Outcome(Status.FAILED, reason=f"report: the result was refused: {hide(refusal)}")
        self._send(result_of(attempt, outcome, self._worker_id), self._deadline())
        return False
