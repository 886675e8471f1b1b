"""A broker whose answers a test decides."""

from __future__ import annotations

from perago.errors import BrokerUnavailableError
from perago.protocol.outcome import Outcome
from perago.protocol.values import Attempt, AttemptSnapshot, Status


class ScriptedBroker:
    """Says ``IN_PROGRESS`` until told otherwise; keeps what was reported."""

    def __init__(self) -> None:
        self._status: dict[str, Status] = {}
        self._silent = 0
        self.reports: list[tuple[Attempt, Outcome]] = []
        self.lost: list[tuple[Attempt, Outcome]] = []
        self.asked = 0

    def set_status(self, attempt: Attempt, status: Status) -> None:
        """Make a task stale, or current again."""
        self._status[attempt.task_id] = status

    def fall_silent(self, questions: int) -> None:
        """Leave the next questions without an answer."""
        self._silent = questions

    def current(self, attempt: Attempt) -> AttemptSnapshot:
        """Answer the attempt fence."""
        self._hear()
        return AttemptSnapshot(
            attempt.workflow_instance_id,
            attempt.task_id,
            attempt.retry_count,
            self._status.get(attempt.task_id, Status.IN_PROGRESS),
        )

    def standing(self, task_id: str) -> str | None:
        """Return how a task stands; one that was never told of is not known."""
        self._hear()
        return self._status.get(task_id)

    def _hear(self) -> None:
        self.asked += 1
        if self._silent:
            self._silent -= 1
            raise BrokerUnavailableError("the scripted broker is silent")

    def report(self, attempt: Attempt, outcome: Outcome) -> bool:
        """Accept a result once, and only while the task is current."""
        if self._status.get(attempt.task_id, Status.IN_PROGRESS) is not Status.IN_PROGRESS:
            self.lost.append((attempt, outcome))
            return False
        self._status[attempt.task_id] = outcome.status
        self.reports.append((attempt, outcome))
        return True
