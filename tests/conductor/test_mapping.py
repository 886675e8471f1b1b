"""Conductor's JSON in words of the specification, and back."""

from __future__ import annotations

from typing import Any

import pytest

from perago.brokers.conductor.mapping import (
    REMOVED,
    attempt_of,
    claim_of,
    holds,
    is_over,
    result_of,
    snapshot_of,
)
from perago.errors import BrokerError, StaleAttemptError, TaskInputError
from perago.protocol.fence import assert_current_attempt_snapshot
from perago.protocol.job import split_input
from perago.protocol.outcome import Outcome
from perago.protocol.values import Attempt, AttemptSnapshot, Status

TASK: dict[str, Any] = {
    "taskType": "count",
    "taskDefName": "count",
    "status": "IN_PROGRESS",
    "referenceTaskName": "step__2",
    "workflowInstanceId": "w-1",
    "taskId": "t-1",
    "retryCount": 3,
    "seq": 7,
    "iteration": 2,
    "responseTimeoutSeconds": 600,
    "inputData": {"params": {"x": 1}},
}
ATTEMPT = Attempt("w-1", "t-1", 3, "step__2", "count", 7, 2)


def test_a_polled_task_is_a_claim() -> None:
    claim = claim_of(TASK, "e-1")
    assert claim.attempt == ATTEMPT
    assert claim.input == {"params": {"x": 1}}
    assert claim.execution_id == "e-1"
    assert claim.lease_seconds == 600
    assert claim.trace == {}


def test_i1_trace_context_is_taken_out_of_the_input() -> None:
    context = {"traceparent": "00-a-b-01", "tracestate": "k=v"}
    claim = claim_of(TASK | {"inputData": {"params": {}, **context}}, "e")
    assert claim.trace == context
    assert split_input(claim.input, workspace=False) == (None, {})


@pytest.mark.parametrize("nothing", [None, "", 7, {}])
def test_i1_a_trace_context_that_says_nothing_is_taken_out_too(nothing: object) -> None:
    """A workflow may pass ``${workflow.input.traceparent}`` on whether it was given or not."""
    claim = claim_of(TASK | {"inputData": {"params": {}, "traceparent": nothing}}, "e")
    assert claim.trace == {}
    assert claim.input == {"params": {}}


def test_i1_an_input_kept_elsewhere_is_refused_by_name() -> None:
    claim = claim_of(TASK | {"inputData": {}, "externalInputPayloadStoragePath": "x.json"}, "e")
    with pytest.raises(TaskInputError, match="externalInputPayloadStoragePath"):
        split_input(claim.input, workspace=False)


def test_the_polled_task_is_not_touched() -> None:
    task = TASK | {"inputData": {"params": {}, "traceparent": "x"}}
    claim_of(task, "e")
    assert task["inputData"] == {"params": {}, "traceparent": "x"}


@pytest.mark.parametrize("key", ["workflowInstanceId", "taskId", "referenceTaskName"])
@pytest.mark.parametrize("value", [None, "", 5])
def test_a_task_without_identity_is_refused(key: str, value: object) -> None:
    with pytest.raises(BrokerError, match=key):
        attempt_of(TASK | {key: value})


@pytest.mark.parametrize("key", ["retryCount", "seq", "iteration", "responseTimeoutSeconds"])
@pytest.mark.parametrize("value", [None, 0])
def test_numbers_that_are_left_out_are_nought(key: str, value: object) -> None:
    without = {name: found for name, found in TASK.items() if name != key}
    assert claim_of(without, "e") == claim_of(TASK | {key: value}, "e")


def test_f1_a_task_as_it_is_now() -> None:
    assert snapshot_of(ATTEMPT, TASK) == AttemptSnapshot("w-1", "t-1", 3, "IN_PROGRESS")
    assert_current_attempt_snapshot(ATTEMPT, snapshot_of(ATTEMPT, TASK))


@pytest.mark.parametrize(
    "change",
    [
        None,
        {"status": "SCHEDULED"},
        {"status": "TIMED_OUT"},
        {"status": None},
        {"retryCount": 4},
        {"workflowInstanceId": "w-2"},
        {"taskId": "t-2"},
    ],
)
def test_f1_whatever_differs_is_not_current(change: dict[str, Any] | None) -> None:
    fresh = snapshot_of(ATTEMPT, None if change is None else TASK | change)
    with pytest.raises(StaleAttemptError):
        assert_current_attempt_snapshot(ATTEMPT, fresh)


def test_f1_a_task_that_is_gone_is_called_removed() -> None:
    assert snapshot_of(ATTEMPT, None) == AttemptSnapshot("w-1", "t-1", 3, REMOVED)


@pytest.mark.parametrize("status", [status for status in Status if status != "IN_PROGRESS"])
def test_an_outcome_is_a_task_result(status: Status) -> None:
    result = result_of(ATTEMPT, Outcome(status, {"result": {}}, "because"), "w0001")
    assert result == {
        "workflowInstanceId": "w-1",
        "taskId": "t-1",
        "status": status.value,
        "outputData": {"result": {}},
        "reasonForIncompletion": "because",
        "workerId": "w0001",
    }


def test_without_a_reason_none_is_sent() -> None:
    result = result_of(ATTEMPT, Outcome(Status.COMPLETED), "w")
    assert "reasonForIncompletion" not in result


@pytest.mark.parametrize(
    ("task", "over"),
    [
        (None, True),
        ({"status": "COMPLETED"}, True),
        ({"status": "FAILED"}, True),
        ({"status": "TIMED_OUT"}, True),
        ({"status": "CANCELED"}, True),
        ({"status": "SKIPPED"}, True),
        ({"status": "FAILED_WITH_TERMINAL_ERROR"}, True),
        ({"status": "COMPLETED_WITH_ERRORS"}, True),
        ({"status": "IN_PROGRESS"}, False),
        ({"status": "SCHEDULED"}, False),
        ({"status": "SOMETHING_NEW"}, False),
        ({}, False),
    ],
)
def test_v7_what_is_over(task: dict[str, Any] | None, over: bool) -> None:
    assert is_over(task) is over


OUTPUT = {"result": {"n": 1, "none": None, "list": [None, {"a": None, "b": 2}]}}
WITHOUT_NULLS = {"result": {"n": 1.0, "list": [None, {"b": 2}]}}
MINE = Outcome(Status.COMPLETED, OUTPUT)


@pytest.mark.parametrize(
    ("task", "mine"),
    [
        ({"status": "COMPLETED", "outputData": OUTPUT}, True),
        ({"status": "COMPLETED", "outputData": WITHOUT_NULLS}, True),
        ({"status": "COMPLETED", "outputData": {"result": {"n": 2}}}, False),
        ({"status": "COMPLETED", "outputData": {}}, False),
        ({"status": "COMPLETED"}, False),
        ({"status": "COMPLETED", "externalOutputPayloadStoragePath": "x"}, True),
        ({"status": "IN_PROGRESS", "outputData": OUTPUT}, False),
        ({"status": "FAILED", "outputData": OUTPUT}, False),
    ],
)
def test_r2_a_task_that_was_read_back_shows_my_result(task: dict[str, Any], mine: bool) -> None:
    assert holds(task, MINE) is mine


def test_r2_of_a_failure_the_status_tells() -> None:
    failed = Outcome(Status.FAILED, {}, "a long reason that the server cuts")
    assert holds({"status": "FAILED", "reasonForIncompletion": "a long"}, failed)
    assert not holds({"status": "TIMED_OUT"}, failed)
