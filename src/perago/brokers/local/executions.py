"""What the state has of a local run, as an :class:`Execution`. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from perago.workflow.family import Family
from perago.workflow.progress import WorkflowExecution, WorkflowStep
from perago.workflow.records import RunRecord, TaskRecord


def execution_of(run: RunRecord, tasks: Sequence[TaskRecord], now: float) -> WorkflowExecution:
    """Describe a run with its attempts."""
    version = run.workflow.get("version")
    return WorkflowExecution(
        id=run.id,
        workflow=str(run.workflow.get("name")),
        version=version if isinstance(version, int) else 1,
        status=str(run.status),
        reason=run.reason,
        input=run.input,
        output=run.output,
        steps=tuple(_step(task, now) for task in tasks),
        correlation_id=run.correlation_id or "",
    )


def family_execution(
    runs: Sequence[RunRecord], tasks: Mapping[str, tuple[TaskRecord, ...]], now: float
) -> WorkflowExecution:
    """Describe a run with its attempts and those of all runs that belong to it.

    A step of a sub workflow is named after the steps that lead to it.
    """
    family = Family(tuple(runs), tasks)
    paths = {run.id: f"{path}/" if (path := family.path(run)) else "" for run in runs}
    steps = (
        replace(_step(task, now), name=paths[task.run_id] + task.reference_name)
        for task in sorted(family.every_task(), key=lambda task: task.scheduled_at)
    )
    return replace(execution_of(runs[0], (), now), steps=tuple(steps))


def _step(task: TaskRecord, now: float) -> WorkflowStep:
    return WorkflowStep(
        task_id=task.task_id,
        name=task.reference_name,
        retry=task.retry_count,
        status=str(task.status),
        kind=str(task.kind),
        reason=task.reason,
        started_at=task.started_at,
        ended_at=task.ended_at,
        wait_seconds=max(0.0, task.start_at - now),
        execution_id=task.execution_id,
        input=task.input,
        output=task.output,
    )
