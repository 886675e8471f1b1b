"""What the state remembers: one record per run and one per task attempt."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from perago.protocol.values import Attempt, Status
from perago.workflow.tasks import TaskKind

_NAMESPACE = uuid.UUID("6f0b4a50-2f0f-5d5c-9f57-6d9a7b1f5f0e")

OPEN = frozenset({Status.SCHEDULED, Status.IN_PROGRESS})
SUCCESSFUL = frozenset({Status.COMPLETED, Status.COMPLETED_WITH_ERRORS, Status.SKIPPED})


class RunStatus(StrEnum):
    """How Conductor names the state of a workflow."""

    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    TERMINATED = "TERMINATED"


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One workflow instance.

    ``generation`` counts the resumes of a failed run: failures of earlier generations no longer
    use up retries. ``clock_from`` is where workflow and total timeouts begin to count. ``store``
    is the name of the store its workspaces are in. A run of a SUB_WORKFLOW has a ``parent``, and
    ``parent_task`` is the attempt there that it was started for.
    """

    id: str
    workflow: Mapping[str, object]
    modules: tuple[str, ...]
    input: Mapping[str, object]
    status: RunStatus
    created_at: float
    clock_from: float
    correlation_id: str | None = None
    output: Mapping[str, object] = field(default_factory=dict)
    reason: str = ""
    ended_at: float | None = None
    generation: int = 0
    store: str = "embedded"
    parent: str = ""
    parent_task: str = ""


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """One attempt of one task; a retry is another record.

    ``lost``: its executor vanished with the runner, so it does not count as a failure.
    ``iteration``: the round of the loop it belongs to, or of the loop that it is; 0 outside of any.
    """

    run_id: str
    task_id: str
    seq: int
    reference_name: str
    task_def_name: str
    kind: TaskKind
    retry_count: int
    generation: int
    status: Status
    input: Mapping[str, object]
    start_at: float
    scheduled_at: float
    output: Mapping[str, object] = field(default_factory=dict)
    reason: str = ""
    started_at: float | None = None
    ended_at: float | None = None
    execution_id: str = ""
    executor_id: str = ""
    lost: bool = False
    iteration: int = 0

    @property
    def step(self) -> str:
        """Return the reference name in the definition: without the number of a loop's round."""
        return self.reference_name.removesuffix(f"__{self.iteration}")

    @property
    def attempt(self) -> Attempt:
        """Return the identity Conductor would give this attempt."""
        return Attempt(
            workflow_instance_id=self.run_id,
            task_id=self.task_id,
            retry_count=self.retry_count,
            reference_task_name=self.reference_name,
            task_def_name=self.task_def_name,
            seq=self.seq,
            iteration=self.iteration,
        )


def left_to_people(tasks: Iterable[TaskRecord]) -> bool:
    """Return whether a run goes on only when a person has done a step: nothing else is under way.

    What the broker does itself is over at once or waits for others; a WAIT waits for time, and so
    does a SUB_WORKFLOW that is to be tried again. ``tasks`` are those of the run and of all runs
    that belong to it.
    """
    open_tasks = [task for task in tasks if task.status in OPEN]
    kinds = {task.kind for task in open_tasks}
    if any(task.kind is TaskKind.SUB_WORKFLOW and _waits(task) for task in open_tasks):
        return False
    return TaskKind.HUMAN in kinds and not kinds & {TaskKind.SIMPLE, TaskKind.WAIT}


def _waits(task: TaskRecord) -> bool:
    return task.status is Status.SCHEDULED


def task_id_of(run_id: str, reference_name: str, retry_count: int) -> str:
    """Derive the id of an attempt from what it is, so that deciding twice schedules once."""
    return str(uuid.uuid5(_NAMESPACE, f"{run_id}/{reference_name}/{retry_count}"))


def child_id_of(task_id: str) -> str:
    """Derive the id of the run that an attempt of a SUB_WORKFLOW starts, for the same reason."""
    return str(uuid.uuid5(_NAMESPACE, f"{task_id}/run"))
