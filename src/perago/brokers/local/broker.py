"""The ``Broker`` port on the local state: what an attempt asks and reports."""

from __future__ import annotations

import uuid

from perago.brokers.local.state import State
from perago.errors import BrokerUnavailableError
from perago.ports import Clock
from perago.protocol.outcome import Outcome
from perago.protocol.values import Attempt, AttemptSnapshot, Claim, Status
from perago.redaction import hidden_outcome, hide
from perago.workflow.records import TaskRecord


class LocalBroker:
    """The workflow engine of one machine, as an attempt sees it."""

    def __init__(self, state: State, clock: Clock) -> None:
        self._state = state
        self._clock = clock

    def claim(self, task: TaskRecord, executor_id: str) -> Claim | None:
        """Hand a scheduled attempt to one executor; None when another process has it."""
        execution_id = uuid.uuid4().hex
        if not self._state.claim(task, execution_id, executor_id, self._clock.now()):
            return None
        return Claim(attempt=task.attempt, input=task.input, execution_id=execution_id)

    def current(self, attempt: Attempt) -> AttemptSnapshot:
        found = self._state.task(attempt.task_id)
        if found is None:
            raise BrokerUnavailableError(
                f"task {attempt.task_id} is not in {self._state.path}",
                remedy="run the attempt with the state it was claimed from",
            )
        return AttemptSnapshot(
            workflow_instance_id=found.run_id,
            task_id=found.task_id,
            retry_count=found.retry_count,
            status=found.status,
        )

    def standing(self, task_id: str) -> str | None:
        found = self._state.task(task_id)
        return None if found is None else found.status

    def report(self, attempt: Attempt, outcome: Outcome) -> bool:
        outcome = hidden_outcome(outcome)
        changes = {
            "status": outcome.status,
            "output": dict(outcome.output),
            "reason": outcome.reason,
            "ended_at": self._clock.now(),
        }
        try:
            return self._state.finish(attempt.task_id, changes)
        except (TypeError, ValueError) as error:
            # An output that is not JSON cannot be kept, so the completion is not accepted.
            reason = hide(f"the output is not JSON: {error}")
            self._state.finish(
                attempt.task_id,
                {**changes, "status": Status.FAILED, "output": {}, "reason": reason},
            )
            return False

    def lose(self, task: TaskRecord) -> bool:
        """End an attempt whose executor vanished with its runner; it does not use up a retry."""
        return self._state.finish(
            task.task_id,
            {
                "status": Status.FAILED,
                "reason": "interrupted",
                "ended_at": self._clock.now(),
                "lost": True,
            },
        )
