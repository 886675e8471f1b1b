"""What Conductor says of a workflow, as an :class:`Execution`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from perago.workflow.progress import WorkflowExecution, WorkflowStep

# Steps of the workflow language itself: they do no work of their own.
_CONTROL: Final = frozenset(
    {
        *("FORK_JOIN", "FORK", "FORK_JOIN_DYNAMIC", "JOIN", "EXCLUSIVE_JOIN", "SWITCH"),
        *("DECISION", "DO_WHILE", "SET_VARIABLE", "TERMINATE", "SUB_WORKFLOW"),
    }
)
_SHOWN_BY_KIND: Final = _CONTROL | {"HUMAN", "WAIT"}


def execution_of(found: Mapping[str, Any]) -> WorkflowExecution:
    """Read a workflow with its tasks; what is missing is empty."""
    tasks = found.get("tasks")
    steps = [task for task in tasks if isinstance(task, Mapping)] if tasks else []
    return WorkflowExecution(
        id=_text(found, "workflowId"),
        workflow=_text(found, "workflowName") or _text(found, "workflowType"),
        version=int(found.get("workflowVersion") or found.get("version") or 1),
        status=_text(found, "status"),
        reason=_text(found, "reasonForIncompletion"),
        input=_mapping(found, "input"),
        output=_mapping(found, "output"),
        steps=tuple(_step(task) for task in sorted(steps, key=lambda task: task.get("seq") or 0)),
        correlation_id=_text(found, "correlationId"),
    )


def _step(task: Mapping[str, Any]) -> WorkflowStep:
    kind = _mapping(task, "workflowTask").get("type") or task.get("taskType")
    waiting = task.get("status") == "SCHEDULED"
    return WorkflowStep(
        task_id=_text(task, "taskId"),
        name=_text(task, "referenceTaskName"),
        retry=int(task.get("retryCount") or 0),
        status=_text(task, "status"),
        kind=str(kind) if kind in _SHOWN_BY_KIND else "SIMPLE",
        reason=_text(task, "reasonForIncompletion"),
        started_at=_seconds(task, "startTime"),
        ended_at=_seconds(task, "endTime"),
        wait_seconds=float(task.get("callbackAfterSeconds") or 0) if waiting else 0.0,
        input=_mapping(task, "inputData"),
        output=_mapping(task, "outputData"),
    )


def _text(found: Mapping[str, Any], key: str) -> str:
    return str(found.get(key) or "")


def _mapping(found: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = found.get(key)
    return value if isinstance(value, Mapping) else {}


def _seconds(found: Mapping[str, Any], key: str) -> float | None:
    value = found.get(key)
    return value / 1000 if isinstance(value, int | float) and value else None
