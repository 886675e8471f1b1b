"""What Conductor's JSON means in words of the specification, and back. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perago.errors import BrokerError, TaskInputError
from perago.protocol import plain
from perago.protocol.outcome import Outcome
from perago.protocol.values import Attempt, AttemptSnapshot, Claim, Status

TRACE_KEYS = ("traceparent", "tracestate")
"""W3C trace context: of the engine's making, not of the task's, so rule I1 never sees it."""
REMOVED = "REMOVED"
"""The status of a task that the server no longer knows."""
_ELSEWHERE = "externalInputPayloadStoragePath"
_OUTPUT_ELSEWHERE = "externalOutputPayloadStoragePath"
_LOG = "see the server's log"
_LONGEST_NAME = 1000
_MOST = 1 << 53
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
        retry_count=_number(task, "retryCount"),
        reference_task_name=_text(task, "referenceTaskName"),
        task_def_name=_text(task, "taskDefName" if task.get("taskDefName") else "taskType"),
        seq=_number(task, "seq"),
        iteration=_number(task, "iteration"),
        started_at=_number(task, "startTime"),
    )


def claim_of(task: Mapping[str, Any], execution_id: str) -> Claim:
    """Read a polled task; its trace context is taken out of the input.

    An input that the server keeps elsewhere shows as one foreign key, which I1 refuses by name.
    ``BrokerError`` for what is not a task, ``TaskInputError`` for an input that cannot be taken.
    """
    found = task.get("inputData")
    if found is not None and not isinstance(found, Mapping):
        raise TaskInputError("task input is not an object", remedy="give 'params' in it")
    if problem := plain.refuse(found or {}):
        raise TaskInputError(f"task input {problem}", remedy="put such data into the workspace")
    given = dict(found or {})
    if task.get(_ELSEWHERE):
        given[_ELSEWHERE] = task[_ELSEWHERE]
    trace = {key: given.pop(key, None) for key in TRACE_KEYS}
    return Claim(
        attempt=attempt_of(task),
        input=given,
        execution_id=execution_id,
        lease_seconds=float(_number(task, "responseTimeoutSeconds")),
        trace={key: text for key, text in trace.items() if isinstance(text, str) and text},
    )


def refusal_of(task: Mapping[str, Any], reason: str, worker_id: str) -> dict[str, Any] | None:
    """Spell the failure of a task that cannot be claimed; None when it cannot even be named."""
    try:
        ids = {key: _text(task, key) for key in ("workflowInstanceId", "taskId")}
    except BrokerError:
        return None
    status = str(Status.FAILED)
    return {**ids, "status": status, "reasonForIncompletion": reason, "workerId": worker_id}


def snapshot_of(attempt: Attempt, task: Mapping[str, Any] | None) -> AttemptSnapshot:
    """Return how the task is now; one that the server does not know is no longer current."""
    if task is None:
        return AttemptSnapshot(
            attempt.workflow_instance_id, attempt.task_id, attempt.retry_count, REMOVED
        )
    return AttemptSnapshot(
        workflow_instance_id=str(task.get("workflowInstanceId") or ""),
        task_id=str(task.get("taskId") or ""),
        retry_count=_number(task, "retryCount"),
        status=str(task.get("status") or ""),
        started_at=_number(task, "startTime"),
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
    """Return whether no executor can be at work on a task any more."""
    return task is None or task.get("status") in _OVER


def holds(task: Mapping[str, Any], outcome: Outcome) -> bool:
    """Return whether a task that was read back shows this outcome."""
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
        raise BrokerError(f"Conductor gave a task without {key}", remedy=_LOG)
    if len(value) > _LONGEST_NAME or not value.isprintable():
        raise BrokerError(f"Conductor gave a task whose {key} is {value[:40]!a}", remedy=_LOG)
    return value


def _number(task: Mapping[str, Any], key: str) -> int:
    """Read a count or a time; nothing stands for 0."""
    value = task.get(key) or 0
    if not isinstance(value, int | float) or not 0 <= value <= _MOST:
        raise BrokerError(f"Conductor gave a task whose {key} is {value!r:.40}", remedy=_LOG)
    return int(value)
