"""The ``Broker`` port on Conductor: what an attempt asks and reports."""

from __future__ import annotations

from enum import Enum
from typing import Any

from perago.brokers.conductor.client import ConductorClient
from perago.brokers.conductor.mapping import holds, result_of, snapshot_of
from perago.brokers.conductor.pace import Pace
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

ENDLESS_LEASE_SECONDS = 600.0
"""How long a result is offered for a task whose lease never ends."""
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0
_CANNOT_SAY = (BrokerUnavailableError, PermissionRefusedError, NotFoundError)


class _Settled(Enum):
    """What reading a task says about the result that was sent for it."""

    ACCEPTED = "accepted"
    OPEN = "open"
    LOST = "lost"
    UNKNOWN = "unknown"


class ConductorBroker:
    """The workflow engine, as the attempts of one executor see it."""

    def __init__(
        self, client: ConductorClient, clock: Clock, worker_id: str, lease_seconds: float = 0.0
    ) -> None:
        self._client = client
        self._clock = clock
        self._worker_id = worker_id
        self._lease_seconds = lease_seconds or ENDLESS_LEASE_SECONDS

    def current(self, attempt: Attempt) -> AttemptSnapshot:
        return snapshot_of(attempt, self._client.task(attempt.task_id))

    def report(self, attempt: Attempt, outcome: Outcome) -> bool:
        """Offer the result until it is taken, lost, or the lease is over.

        The answer to an update says nothing (R2): only the task itself does. It is sent again
        only after reading that the task is still this attempt's (P7).
        """
        result = result_of(attempt, outcome, self._worker_id)
        deadline = self._clock.monotonic() + self._lease_seconds
        pace = Pace(_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS)
        settled = _Settled.OPEN
        while True:
            refusal = self._send(result) if settled is _Settled.OPEN else None
            if refusal is not None:
                self._give_up(attempt, refusal)
                return False
            settled = self._settle(attempt, outcome)
            if settled in {_Settled.ACCEPTED, _Settled.LOST}:
                return settled is _Settled.ACCEPTED
            pace = pace.after_nothing()
            if self._clock.monotonic() + pace.wait_seconds >= deadline:
                return False
            self._clock.sleep(pace.wait_seconds)

    def _send(self, result: dict[str, Any]) -> str | None:
        """Send once; return why the server will never take it, or None."""
        try:
            self._client.update(result)
        except _CANNOT_SAY:
            return None  # It may have arrived all the same: the task shows it.
        except (BrokerError, TypeError, ValueError) as error:
            return describe(error)
        return None

    def _settle(self, attempt: Attempt, outcome: Outcome) -> _Settled:
        try:
            task = self._client.task(attempt.task_id)
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

    def _give_up(self, attempt: Attempt, refusal: str) -> None:
        """Say why there is no result, so that the retry need not wait for the lease to end."""
        outcome = Outcome(Status.FAILED, reason=f"report: the result was refused: {refusal}")
        self._send(result_of(attempt, outcome, self._worker_id))
