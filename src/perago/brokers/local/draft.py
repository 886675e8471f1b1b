"""A decision while it is made: the situation, the tasks as they will be, the actions so far."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from perago.brokers.local.actions import (
    Action,
    AddSystemTask,
    UpdateSystemTask,
)
from perago.protocol.values import Status
from perago.workflow.controls import Controls
from perago.workflow.definition import Workflow
from perago.workflow.expressions import Read
from perago.workflow.family import Family
from perago.workflow.records import (
    OPEN,
    SUCCESSFUL,
    RunRecord,
    RunStatus,
    TaskRecord,
    task_id_of,
)
from perago.workflow.scope import reader, variables_of, workflow_scope
from perago.workflow.tasks import TaskKind, WorkflowTask

_NAMED_BY_KIND = frozenset(
    {TaskKind.FORK_JOIN, TaskKind.FORK_JOIN_DYNAMIC, TaskKind.JOIN, TaskKind.SWITCH}
)
"""Kinds whose own name Conductor writes in place of the name that the definition gives."""


@dataclass(frozen=True, slots=True)
class RunSituation:
    """All that a decision depends on; ``jitter`` is a number from 0 to 1.

    ``longest_delay`` caps the delays of retries. ``family`` has the runs of sub workflows, and
    those that this one belongs to.
    """

    workflow: Workflow
    run: RunRecord
    tasks: tuple[TaskRecord, ...]
    controls: Mapping[str, Controls]
    now: float
    writers: frozenset[str] = frozenset()
    jitter: float = 0.0
    longest_delay: float = math.inf
    family: Family = field(default_factory=Family)


@dataclass(frozen=True, slots=True)
class Decision:
    """Actions to carry out now, and when time alone changes the answer."""

    actions: tuple[Action, ...] = ()
    wake_at: float | None = None


class RunEnds(Exception):  # noqa: N818 - it unwinds the walk and never leaves the decider
    """The run is over, whatever else could begin."""

    def __init__(
        self, status: RunStatus, reason: str, output: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.output = output


@dataclass(slots=True)
class Draft:
    """What a decision has come to so far."""

    situation: RunSituation
    latest: dict[str, TaskRecord] = field(default_factory=dict)
    actions: list[Action] = field(default_factory=list)
    wake_at: float | None = None
    seq: int = 0
    branches_open: bool = False
    forks: dict[str, str] = field(default_factory=dict)
    """The tasks of dynamic forks, each with its fork, by reference name."""
    iteration: int = 0
    """The round of the loop that is being walked; 0 outside of any."""

    def _name(self, task: WorkflowTask) -> str:
        return self._in_round(task.reference_name)

    def _in_round(self, name: str) -> str:
        """Name a task as it is in the current round of the loop around it, if there is one."""
        return f"{name}__{self.iteration}" if self.iteration else name

    # --- tasks that the broker runs itself -----------------------------------------------------

    def _complete(
        self,
        task: WorkflowTask,
        kind: TaskKind,
        given: Mapping[str, object],
        output: Mapping[str, object],
    ) -> TaskRecord:
        """Run a task that is over the moment it is reached."""
        now = self.situation.now
        record = self._record(task, kind, Status.COMPLETED, given)
        record = replace(record, output=output, started_at=now, ended_at=now)
        return self._keep(record)

    def _add(self, task: WorkflowTask, kind: TaskKind, given: Mapping[str, object]) -> TaskRecord:
        """Begin a task that stays open until a later decision ends it."""
        record = self._record(task, kind, Status.IN_PROGRESS, given)
        return self._keep(replace(record, started_at=self.situation.now))

    def _keep(self, record: TaskRecord) -> TaskRecord:
        self.latest[record.reference_name] = record
        self.actions.append(AddSystemTask(record))
        return record

    def _end(
        self, record: TaskRecord, status: Status, output: Mapping[str, object], reason: str = ""
    ) -> None:
        """End a task that was open."""
        self._update(
            record, status=status, output=output, reason=reason, ended_at=self.situation.now
        )

    def _opened(self, task: WorkflowTask) -> TaskRecord | None:
        """Find a task, open again where the run goes on after its end."""
        record = self.latest.get(self._name(task))
        if record is None or record.status in SUCCESSFUL | OPEN:
            return record
        if record.generation == self.situation.run.generation:
            raise RunEnds(
                RunStatus.FAILED,
                f"task {record.reference_name!r} ended {record.status}: {record.reason}",
            )
        return self._update(
            record,
            status=Status.IN_PROGRESS,
            generation=self.situation.run.generation,
            reason="",
            ended_at=None,
        )

    def _update(self, record: TaskRecord, **changes: Any) -> TaskRecord:
        now = replace(record, **changes)
        self.latest[record.reference_name] = now
        # One decision moves a task once: from what the state has to what it is in the end.
        for index, action in enumerate(self.actions):
            match action:
                case AddSystemTask(task) if task.task_id == now.task_id:
                    self.actions[index] = AddSystemTask(now)
                    return now
                case UpdateSystemTask(before, task) if task.task_id == now.task_id:
                    self.actions[index] = UpdateSystemTask(before, now)
                    return now
                case _:
                    pass
        self.actions.append(UpdateSystemTask(record, now))
        return now

    def _record(
        self,
        task: WorkflowTask,
        kind: TaskKind,
        status: Status,
        given: Mapping[str, object],
    ) -> TaskRecord:
        self.seq += 1
        run = self.situation.run
        return TaskRecord(
            run_id=run.id,
            task_id=task_id_of(run.id, self._name(task), 0),
            seq=self.seq,
            reference_name=self._name(task),
            iteration=self.iteration,
            task_def_name=str(kind) if kind in _NAMED_BY_KIND else task.name,
            kind=kind,
            retry_count=0,
            generation=run.generation,
            status=status,
            input=given,
            start_at=self.situation.now,
            scheduled_at=self.situation.now,
        )

    def _reader(self, task_id: str = "") -> Read:
        workflow = self.situation.workflow
        variables = variables_of(workflow, self.situation.tasks)
        scope = workflow_scope(workflow, self.situation.run, variables)
        return reader(scope, self.latest.values(), task_id)

    def _wake(self, at: float) -> None:
        """Ask to be asked again; what is due already waits for an executor, not for time."""
        if at > self.situation.now:
            self.wake_at = at if self.wake_at is None else min(self.wake_at, at)
