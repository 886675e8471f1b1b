"""What an expression can see: the document Conductor resolves ``${...}`` against."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from perago.workflow.definition import Workflow
from perago.workflow.expressions import TASK_ID, Expression, Read, lookup
from perago.workflow.records import RunRecord, TaskRecord
from perago.workflow.tasks import TaskKind

WORKFLOW: Final = "workflow"


def variables_of(workflow: Workflow, tasks: Iterable[TaskRecord]) -> dict[str, object]:
    """Return the variables of a run: those of the definition, then what was set, in order."""
    setters = (task for task in tasks if task.kind is TaskKind.SET_VARIABLE)
    found = dict(workflow.variables)
    for task in sorted(setters, key=lambda task: task.seq):
        found.update(task.input)
    return found


def workflow_scope(
    workflow: Workflow, run: RunRecord, variables: Mapping[str, object]
) -> dict[str, object]:
    """Everything below ``${workflow...}``."""
    return {
        "input": run.input,
        "output": run.output,
        "status": str(run.status),
        "workflowId": run.id,
        "parentWorkflowId": run.parent or None,
        "parentWorkflowTaskId": run.parent_task or None,
        "workflowType": workflow.name,
        "version": workflow.version,
        "correlationId": run.correlation_id,
        "reasonForIncompletion": run.reason or None,
        "schemaVersion": 2,
        "variables": variables,
    }


def task_scope(task: TaskRecord) -> dict[str, object]:
    """Everything below ``${<reference name>...}``."""
    return {
        "input": task.input,
        "output": task.output,
        "taskType": task.task_def_name if task.kind == "SIMPLE" else str(task.kind),
        "status": str(task.status),
        "referenceTaskName": task.reference_name,
        "retryCount": task.retry_count,
        "taskDefName": task.task_def_name,
        "scheduledTime": _milliseconds(task.scheduled_at),
        "startTime": _milliseconds(task.started_at),
        "endTime": _milliseconds(task.ended_at),
        "workflowInstanceId": task.run_id,
        "taskId": task.task_id,
        "reasonForIncompletion": task.reason or None,
        "workerId": task.executor_id or None,
        "iteration": task.iteration,
    }


def _milliseconds(seconds: float | None) -> int:
    return int(seconds * 1000) if seconds is not None else 0


WORKFLOW_FIELDS: Final = frozenset(
    {
        *("input", "output", "status", "workflowId", "parentWorkflowId", "parentWorkflowTaskId"),
        *("workflowType", "version", "correlationId", "reasonForIncompletion", "schemaVersion"),
        "variables",
    }
)
TASK_FIELDS: Final = frozenset(
    {
        *("input", "output", "taskType", "status", "referenceTaskName", "retryCount"),
        *("taskDefName", "scheduledTime", "startTime", "endTime", "workflowInstanceId", "taskId"),
        *("reasonForIncompletion", "workerId", "iteration"),
    }
)


def reader(workflow: Mapping[str, object], tasks: Iterable[TaskRecord], task_id: str = "") -> Read:
    """Make the function that finds the value of an expression for one attempt."""
    document: dict[str, object] = {task.step: task_scope(task) for task in tasks}
    document[WORKFLOW] = workflow
    document[TASK_ID] = task_id or None

    def read(expression: Expression) -> object:
        return lookup(document, expression.path)

    return read
