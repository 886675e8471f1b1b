"""The steps on Conductor that people do: its HUMAN tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from perago.brokers.conductor.client import ConductorClient
from perago.brokers.conductor.mapping import claim_of
from perago.protocol.values import Claim, Status
from perago.workflow.human import CLAIMED_BY, HumanTask, claimed_by, done_by
from perago.workflow.tasks import TaskKind

CONDUCTOR: Final = "conductor"


@dataclass(frozen=True, slots=True)
class ConductorHumanTasks:
    """Those of one server.

    They are listed by its search index, which is a moment behind; each is read before it is shown.
    """

    client: ConductorClient
    where: str = CONDUCTOR

    def waiting(self) -> Sequence[HumanTask]:
        listed = self.client.search_tasks(
            f"taskType={TaskKind.HUMAN} AND status={Status.IN_PROGRESS}"
        )
        found = (self.task(str(each.get("taskId"))) for each in listed)
        return sorted(
            (task for task in found if task and task.open), key=lambda task: task.since or 0.0
        )

    def task(self, task_id: str) -> HumanTask | None:
        found = self.client.task(task_id)
        return _read(found) if found and found.get("taskType") == TaskKind.HUMAN else None

    def note_claims(self, task: HumanTask) -> None:
        attempt = task.attempt
        self.client.update(
            {
                "workflowInstanceId": attempt.workflow_instance_id,
                "taskId": attempt.task_id,
                "status": str(Status.IN_PROGRESS),
                "outputData": {CLAIMED_BY: list(task.claimed_by)},
            }
        )

    def begin(self, claim: Claim) -> None:
        """Tell nothing: the server has no place for it."""


def _read(task: Mapping[str, Any]) -> HumanTask:
    claim = claim_of(task, "")
    status, output = str(task.get("status") or ""), task.get("outputData")
    said = output if isinstance(output, Mapping) else {}
    return HumanTask(
        attempt=claim.attempt,
        input=claim.input,
        workflow=str(task.get("workflowType") or ""),
        since=claim.attempt.started_at / 1000 or None,
        where=CONDUCTOR,
        claimed_by=claimed_by(said) if status == Status.IN_PROGRESS else (),
        status=status,
        done_by=done_by(said),
    )
