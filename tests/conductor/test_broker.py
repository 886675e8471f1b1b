"""The ``Broker`` port on the real server: what is asked and what is reported."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from perago.brokers.conductor.broker import ConductorBroker
from perago.brokers.conductor.client import ConductorClient
from perago.brokers.conductor.mapping import attempt_of
from perago.clock import SystemClock
from perago.errors import BrokerUnavailableError, StaleAttemptError
from perago.protocol.fence import assert_current_attempt_snapshot
from perago.protocol.outcome import Outcome
from perago.protocol.values import Attempt, Status
from tests.conductor.lab import DONE, Lab, eventually, new_lab

WORKER = "worker-0001"


@pytest.fixture
def broker(truth: ConductorClient) -> ConductorBroker:
    return ConductorBroker(truth, SystemClock(), WORKER, 60)


def current(broker: ConductorBroker, attempt: Attempt) -> None:
    assert_current_attempt_snapshot(attempt, broker.current(attempt))


def test_f1_a_polled_attempt_is_current(lab: Lab, broker: ConductorBroker) -> None:
    current(broker, lab.attempt())


@pytest.mark.parametrize("how", ["terminated", "removed", "timed out", "completed", "given back"])
def test_f1_an_attempt_that_is_over_is_not_current(
    how: str, truth: ConductorClient, broker: ConductorBroker
) -> None:
    """And its result is lost, told, and changes nothing (R2, P7)."""
    lab = new_lab(truth, responseTimeoutSeconds=1 if how == "timed out" else 300)
    attempt = lab.attempt()
    end(lab, attempt, how)
    before = truth.task(attempt.task_id)
    with pytest.raises(StaleAttemptError):
        current(broker, attempt)
    if how == "given back":
        return  # Nobody has it, so a result for it would be taken: the fence is what refuses.
    assert not broker.report(attempt, DONE)
    assert truth.task(attempt.task_id) == before


def end(lab: Lab, attempt: Attempt, how: str) -> None:
    workflow_id = attempt.workflow_instance_id
    match how:
        case "terminated":
            lab.truth.terminate(workflow_id, "an operator")
        case "removed":
            lab.truth.terminate(workflow_id, "an operator")
            lab.act("DELETE", f"/workflow/{workflow_id}/remove")
        case "timed out":
            eventually(lambda: lab.status(attempt) == "TIMED_OUT", "the end of the lease")
        case _:
            status = "COMPLETED" if how == "completed" else "IN_PROGRESS"
            lab.truth.update(
                {
                    "workflowInstanceId": workflow_id,
                    "taskId": attempt.task_id,
                    "status": status,
                    "outputData": {"result": "another's"},
                }
            )


def test_a_paused_workflow_keeps_its_attempt(lab: Lab, broker: ConductorBroker) -> None:
    attempt = lab.attempt()
    lab.act("PUT", f"/workflow/{attempt.workflow_instance_id}/pause")
    current(broker, attempt)
    assert broker.report(attempt, DONE)
    lab.act("PUT", f"/workflow/{attempt.workflow_instance_id}/resume")
    eventually(lambda: workflow_status(lab, attempt) == "COMPLETED", "the end of the workflow")


def workflow_status(lab: Lab, attempt: Attempt) -> str:
    return str((lab.truth.execution(attempt.workflow_instance_id) or {}).get("status"))


def test_i3_a_completion_is_taken_and_becomes_the_output(lab: Lab, broker: ConductorBroker) -> None:
    attempt = lab.attempt()
    assert broker.report(attempt, DONE)
    task = lab.task(attempt)
    assert (task["status"], task["outputData"]) == ("COMPLETED", DONE.output)
    assert task["workerId"] == WORKER
    eventually(lambda: workflow_status(lab, attempt) == "COMPLETED", "the end of the workflow")
    execution = lab.truth.execution(attempt.workflow_instance_id)
    assert execution is not None
    assert execution["output"] == {"result": DONE.output["result"]}


def test_g1_a_failure_is_retried_by_conductor(lab: Lab, broker: ConductorBroker) -> None:
    attempt = lab.attempt()
    assert broker.report(attempt, Outcome(Status.FAILED, {}, "body: TaskFailed: no luck"))
    assert lab.task(attempt)["reasonForIncompletion"] == "body: TaskFailed: no luck"
    retry = attempt_of(lab.poll())
    assert (retry.retry_count, retry.logical_task_key) == (1, attempt.logical_task_key)
    assert retry.task_id != attempt.task_id
    with pytest.raises(StaleAttemptError):
        current(broker, attempt)
    current(broker, retry)


def test_f1_a_lost_attempt_does_not_end_the_rerun_that_has_its_task_id(
    lab: Lab, broker: ConductorBroker
) -> None:
    attempt = lab.attempt()
    lab.truth.terminate(attempt.workflow_instance_id, "an operator")
    path = f"/workflow/{attempt.workflow_instance_id}/rerun"
    lab.act("POST", path, {"reRunFromTaskId": attempt.task_id})
    again = attempt_of(lab.poll())
    assert not broker.report(attempt, Outcome(Status.FAILED, {}, "fence: it is not current"))
    current(broker, again)
    assert broker.report(again, DONE)


def test_a_terminal_failure_is_not_retried(lab: Lab, broker: ConductorBroker) -> None:
    attempt = lab.attempt()
    assert broker.report(attempt, Outcome(Status.FAILED_WITH_TERMINAL_ERROR, {}, "pre guardrail"))
    eventually(lambda: workflow_status(lab, attempt) == "FAILED", "the end of the workflow")
    assert lab.truth.poll(lab.name, WORKER, 1) == []


def test_r2_the_same_result_reported_twice_is_accepted_once(
    lab: Lab, broker: ConductorBroker
) -> None:
    attempt = lab.attempt()
    assert broker.report(attempt, DONE)
    assert broker.report(attempt, DONE)
    assert not broker.report(attempt, Outcome(Status.COMPLETED, {"result": "a twin's"}))
    assert not broker.report(attempt, Outcome(Status.FAILED, {}, "late"))
    assert lab.task(attempt)["outputData"] == DONE.output


@pytest.mark.parametrize("taken", [True, False], ids=["taken", "dropped"])
def test_r2_a_result_that_nobody_waits_for_is_read_back_later(
    lab: Lab, truth: ConductorClient, taken: bool
) -> None:
    questions: list[Callable[[], bool]] = []
    broker = ConductorBroker(truth, SystemClock(), WORKER, 60, questions.append)
    attempt = lab.attempt()
    if not taken:
        truth.terminate(attempt.workflow_instance_id, "an operator")
    requests = truth.requests
    assert broker.report(attempt, DONE)
    assert truth.requests == requests + 1
    assert [question() for question in questions] == [taken]


def test_r2_what_was_published_and_what_failed_is_read_back_at_once(
    truth: ConductorClient,
) -> None:
    questions: list[Callable[[], bool]] = []
    broker = ConductorBroker(truth, SystemClock(), WORKER, 60, questions.append)
    published = replace(DONE, fence="hard")
    for outcome in (published, Outcome(Status.FAILED, {}, "late")):
        lab = new_lab(truth)
        attempt = lab.attempt()
        truth.terminate(attempt.workflow_instance_id, "an operator")
        assert not broker.report(attempt, outcome)
    assert questions == []


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), {1, 2}, object()], ids=["nan", "inf", "set", "object"]
)
def test_a_result_that_is_not_json_fails_at_once_and_is_retried(
    lab: Lab, broker: ConductorBroker, value: object
) -> None:
    """The retry need not wait for the lease to end."""
    attempt = lab.attempt()
    assert not broker.report(attempt, Outcome(Status.COMPLETED, {"result": value}))
    assert lab.status(attempt) == "FAILED"
    assert lab.task(attempt)["reasonForIncompletion"].startswith("report: the result was refused")
    assert lab.poll()["retryCount"] == 1


def test_a_result_that_the_server_keeps_elsewhere_is_accepted(
    lab: Lab, broker: ConductorBroker
) -> None:
    attempt = lab.attempt()
    assert broker.report(attempt, Outcome(Status.COMPLETED, {"result": "x" * 3_200_000}))
    assert lab.status(attempt) == "COMPLETED"


def test_a_result_that_is_too_large_is_lost_and_said_so(lab: Lab, broker: ConductorBroker) -> None:
    attempt = lab.attempt()
    assert not broker.report(attempt, Outcome(Status.COMPLETED, {"result": "x" * 10_500_000}))
    assert lab.status(attempt) == "FAILED_WITH_TERMINAL_ERROR"


VALUES = {
    "none": None,
    "empty": [[], {}, "", 0, False],
    "nested": [None, {"k": None, "l": [None]}],
    "whole": 10**30,
    "small": 5e-324,
    "large": 1.7976931348623157e308,
    "part": 0.1,
    "one": 1.0,
    "negative": -0.0,
    "text": '\U0001f600 é \u0000 \u2028 \\ " / ${workflow.input.x}',
    "key ü": {"": 1, "a.b": 2, "$": 3},
}


@pytest.mark.parametrize("name", VALUES)
def test_r2_whatever_json_holds_is_recognised_when_it_is_read_back(
    lab: Lab, broker: ConductorBroker, name: str
) -> None:
    attempt = lab.attempt()
    outcome = Outcome(Status.COMPLETED, {"result": {name: VALUES[name]}})
    assert broker.report(attempt, outcome)


def test_a_report_without_a_lease_end_is_bounded(lab: Lab) -> None:
    clock = Racing()
    client = ConductorClientThatIsDown()
    broker = ConductorBroker(client, clock, WORKER)  # type: ignore[arg-type]
    assert not broker.report(lab.attempt(), DONE)
    assert 500 <= clock.slept <= 600


class Racing(SystemClock):
    """A clock on which waiting takes no time."""

    def __init__(self) -> None:
        self.slept = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.slept

    def sleep(self, seconds: float) -> None:
        self.slept += seconds


class ConductorClientThatIsDown:
    """Nobody answers."""

    def update(self, result: object, within_seconds: float | None = None) -> None:
        raise BrokerUnavailableError("down")

    def task(self, task_id: str, within_seconds: float | None = None) -> None:
        raise BrokerUnavailableError("down")
