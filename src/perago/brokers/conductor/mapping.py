"""What Conductor's JSON means in words of the specification, and back. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perago.errors import BrokerError
from perago.protocol.outcome import Outcome
from perago.protocol.reading import MOST_DEPTH, depth
from perago.protocol.values import Attempt, AttemptSnapshot, Claim, Status

TRACE_KEYS = ("traceparent", "tracestate")
"""W3C trace context: of the engine's making, not of the task's, so rule I1 never sees it."""
REMOVED = "REMOVED"
"""The status of a task that the server no longer knows."""
_ELSEWHERE = "externalInputPayloadStoragePath"
_TOO_DEEP = f"input nested more than {MOST_DEPTH} deep"
_OUTPUT_ELSEWHERE = "externalOutputPayloadStoragePath"
_OVER = frozenset(
    {
        "CANCELED",
        "COMPLETED",
        "COMPLETED_WITH_ERRORS",
        "FAILED",
        "FAILED_WITH_TERMINAL_ERROR",
        "SKIPPED",
        "TIMED_OUT",
    }
)


def attempt_of(task: Mapping[str, Any]) -> Attempt:
    """Read the identity of an attempt out of a task."""
    return Attempt(
        workflow_instance_id=_text(task, "workflowInstanceId"),
        task_id=_text(task, "taskId"),
        retry_count=int(task.get("retryCount") or 0),
        reference_task_name=_text(task, "referenceTaskName"),
        task_def_name=str(task.get("taskDefName") or _text(task, "taskType")),
        seq=int(task.get("seq") or 0),
        iteration=int(task.get("iteration") or 0),
        started_at=int(task.get("startTime") or 0),
    )


def claim_of(task: Mapping[str, Any], execution_id: str) -> Claim:
    """Read a polled task; its trace context is taken out of the input.

    An input that the server keeps elsewhere shows as one foreign key, which I1 refuses by name.
    """
    given = dict(task.get("inputData") or {})
    if task.get(_ELSEWHERE):
        given[_ELSEWHERE] = task[_ELSEWHERE]
    if depth(given) > MOST_DEPTH:  # Nobody could pass it on; I1 refuses it by this name.
        given = {_TOO_DEEP: True}
    found = {key: given.pop(key, None) for key in TRACE_KEYS}
    return Claim(
        attempt=attempt_of(task),
        input=given,
        execution_id=execution_id,
        lease_seconds=float(task.get("responseTimeoutSeconds") or 0),
        trace={key: text for key, text in found.items() if isinstance(text, str) and text},
    )


def snapshot_of(attempt: Attempt, task: Mapping[str, Any] | None) -> AttemptSnapshot:
    """Say how the task is now; one that the server does not know is no longer current."""
    if task is None:
        return AttemptSnapshot(
            attempt.workflow_instance_id, attempt.task_id, attempt.retry_count, REMOVED
        )
    return AttemptSnapshot(
        workflow_instance_id=str(task.get("workflowInstanceId") or ""),
        task_id=str(task.get("taskId") or ""),
        retry_count=int(task.get("retryCount") or 0),
        status=str(task.get("status") or ""),
        started_at=int(task.get("startTime") or 0),
    )


def result_of(attempt: Attempt, outcome: Outcome, worker_id: str) -> dict[str, Any]:
    """Spell an outcome as a TaskResult."""
    result: dict[str, Any] = {
        "workflowInstanceId": attempt.workflow_instance_id,
        "taskId": attempt.task_id,
        "status": str(outcome.status),
        "outputData": dict(outcome.output),
        "workerId": worker_id,
    }
    if outcome.reason:
        result["reasonForIncompletion"] = outcome.reason
    return result


def is_over(task: Mapping[str, Any] | None) -> bool:
    """Tell whether no executor can be at work on a task any more."""
    return task is None or task.get("status") in _OVER


def holds(task: Mapping[str, Any], outcome: Outcome) -> bool:
    """Tell whether a task that was read back shows this outcome."""
    if task.get("status") != outcome.status:
        return False
    if outcome.status is not Status.COMPLETED or task.get(_OUTPUT_ELSEWHERE):
        return True
    return bool(_without_nulls(task.get("outputData") or {}) == _without_nulls(outcome.output))


def _without_nulls(value: Any) -> Any:
    """Compare what is said: a server may leave out keys that hold nothing."""
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [_without_nulls(item) for item in value]
    return value


def _text(task: Mapping[str, Any], key: str) -> str:
    value = task.get(key)
    if not isinstance(value, str) or not value:
        raise BrokerError(f"Conductor gave a task without {key}", remedy="see the server's log")
    return value
