"""The steps of local runs that people do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perago.brokers.local.state import State
from perago.protocol.values import Claim, Status
from perago.workflow.human import CLAIMED_BY, HumanTask, claimed_by, done_by
from perago.workflow.records import RunStatus, TaskRecord
from perago.workflow.tasks import TaskKind


@dataclass(frozen=True, slots=True)
class LocalHumanTasks:
    """Those of one home."""

    state: State
    where: str = "local"

    def waiting(self) -> Sequence[HumanTask]:
        return [self._read(task) for task in self.state.left_to_people()]

    def task(self, task_id: str) -> HumanTask | None:
        found = self.state.task(task_id)
        return self._read(found) if found and found.kind is TaskKind.HUMAN else None

    def note_claims(self, task: HumanTask) -> None:
        output = {CLAIMED_BY: list(task.claimed_by)}
        self.state.finish(task.attempt.task_id, {"output": output})

    def begin(self, claim: Claim) -> None:
        self.state.finish(claim.attempt.task_id, {"execution_id": claim.execution_id})

    def _read(self, task: TaskRecord) -> HumanTask:
        run = self.state.run(task.run_id)
        # Nobody ends the steps of a run that has just ended before its runner has.
        ended = task.status is Status.IN_PROGRESS and run.status is not RunStatus.RUNNING
        status = Status.CANCELED if ended else task.status
        return HumanTask(
            attempt=task.attempt,
            input=task.input,
            workflow=str(run.workflow.get("name")),
            since=task.started_at,
            claimed_by=claimed_by(task.output) if status is Status.IN_PROGRESS else (),
            modules=run.modules,
            store=run.store,
            where=self.where,
            status=status,
            done_by=done_by(task.output),
        )
