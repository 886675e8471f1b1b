"""Network faults per call on a real Conductor (faults.md): poll, extend, get task, update task."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from perago.brokers.conductor.broker import ConductorBroker
from perago.brokers.conductor.client import ConductorClient
from perago.clock import SystemClock
from perago.errors import BrokerUnavailableError
from perago.protocol.values import Attempt
from perago.settings import ConductorSettings
from tests import injection
from tests.conductor.lab import DONE, Lab, eventually, new_lab
from tests.faults.impatience import SkippingClock
from tests.faults.proxy import (
    Drip,
    Fault,
    Hang,
    HangAfter,
    Hold,
    LoseAnswer,
    LoseAnswerThen,
    Proxy,
    ResetBefore,
    Rule,
    Say,
    Truncate,
)
from tests.patience import LIMIT

Report = Callable[[Attempt], bool]
WORKER = "worker-0001"
UPDATE = ("POST", r"/api/tasks$")
READ = ("GET", r"/api/tasks/[0-9a-f-]{36}$")
POLL = ("GET", r"/api/tasks/poll/batch/")


@dataclass(frozen=True)
class Case:
    """A fault, and whether the server did what was asked all the same."""

    name: str
    make: Callable[[], Fault] | None
    applied: bool = False

    def __str__(self) -> str:
        return self.name


CASES = [
    Case("refused", None),
    Case("reset before send", ResetBefore),
    Case("answer lost", LoseAnswer, applied=True),
    Case("hang", Hang),
    Case("hang after", HangAfter, applied=True),
    Case("500", lambda: Say(500)),
    Case("500 applied", lambda: Say(500, applied=True), applied=True),
    Case("503", lambda: Say(503)),
    Case("429", lambda: Say(429)),
    Case("truncated", lambda: Truncate(2), applied=True),
]
each_case = pytest.mark.parametrize("case", CASES, ids=str)
# A server that refuses connections is not back a moment later.
each_passing_case = pytest.mark.parametrize("case", [case for case in CASES if case.make], ids=str)


@contextmanager
def meeting(proxy: Proxy, case: Case, asked: tuple[str, str], times: int | None) -> Iterator[None]:
    """Have requests of one kind meet the fault; refused is so for all kinds."""
    if case.make is None:
        proxy.forget()
        injection.inject("refused", proxy.down)
        try:
            yield
        finally:
            proxy.up()
        return
    with proxy.during(Rule(case.make(), *asked, times=times)):
        yield


# --- poll -----------------------------------------------------------------------------------------


@each_case
def test_a_poll_is_never_repeated_and_its_tasks_come_back(
    case: Case, truth: ConductorClient, faulted: ConductorClient, proxy: Proxy
) -> None:
    lab = new_lab(truth, responseTimeoutSeconds=1)
    lab.start()
    with meeting(proxy, case, POLL, times=None), pytest.raises(BrokerUnavailableError) as told:
        faulted.poll(lab.name, WORKER, 1)
    assert len(proxy.matching(*POLL)) == (0 if case.make is None else 1)
    assert "poll tasks" in str(told.value)
    # V5: a task that was handed out to nobody comes back as a retry when its lease is over.
    task = lab.poll()
    assert task["retryCount"] == (1 if case.applied else 0)


def test_a_poll_that_found_nothing_to_read_is_an_error_and_not_an_empty_answer(
    lab: Lab, faulted: ConductorClient, proxy: Proxy
) -> None:
    """G2: tasks may have been handed out in an answer that broke off where HTTP saw no fault."""
    lab.start()
    rule = Rule(Truncate(7, honest=True), *POLL)
    with proxy.during(rule), pytest.raises(BrokerUnavailableError, match="not JSON"):
        eventually(lambda: faulted.poll(lab.name, WORKER, 1), "never")


# --- extend ---------------------------------------------------------------------------------------


@each_passing_case
def test_w4_extending_a_lease_outlives_one_fault(
    case: Case, lab: Lab, faulted: ConductorClient, proxy: Proxy
) -> None:
    attempt = lab.attempt()
    before = lab.task(attempt)["updateTime"]
    time.sleep(0.01)  # the times of the server are in milliseconds
    with meeting(proxy, case, UPDATE, times=1):
        faulted.extend(attempt, WORKER)
    after = lab.task(attempt)
    assert after["updateTime"] > before
    assert after["status"] == "IN_PROGRESS"
    assert lab.truth.poll(lab.name, "other", 1) == []


@each_case
def test_w4_a_lease_that_cannot_be_extended_is_told(
    case: Case, lab: Lab, faulted: ConductorClient, proxy: Proxy
) -> None:
    attempt = lab.attempt()
    with meeting(proxy, case, UPDATE, times=None), pytest.raises(BrokerUnavailableError):
        faulted.extend(attempt, WORKER)
    assert lab.status(attempt) == "IN_PROGRESS"


# --- get task -------------------------------------------------------------------------------------


@each_passing_case
def test_f2_reading_the_task_outlives_one_fault(
    case: Case, lab: Lab, faulted: ConductorClient, proxy: Proxy
) -> None:
    attempt = lab.attempt()
    with meeting(proxy, case, READ, times=1):
        fresh = ConductorBroker(faulted, SystemClock(), WORKER).current(attempt)
    assert (fresh.task_id, fresh.status) == (attempt.task_id, "IN_PROGRESS")


@each_case
def test_f2_a_task_that_cannot_be_read_is_not_current(
    case: Case, lab: Lab, faulted: ConductorClient, proxy: Proxy
) -> None:
    attempt = lab.attempt()
    with meeting(proxy, case, READ, times=None), pytest.raises(BrokerUnavailableError):
        ConductorBroker(faulted, SystemClock(), WORKER).current(attempt)


def test_an_answer_in_drops_ends_in_time(lab: Lab, faulted: ConductorClient, proxy: Proxy) -> None:
    attempt = lab.attempt()
    drops = Rule(Drip(1, 0.2, endless=True), *READ, times=None)
    with proxy.during(drops), pytest.raises(BrokerUnavailableError, match="nothing came within"):
        faulted.task(attempt.task_id)
    assert drops.met > 1


# --- update task ----------------------------------------------------------------------------------


@pytest.fixture
def report(faulted: ConductorClient, clock: SkippingClock) -> Report:
    """Report through what is spoiled, to a task with a lease of two minutes."""
    return lambda attempt: ConductorBroker(faulted, clock, WORKER, 120).report(attempt, DONE)


@each_passing_case
def test_p6_a_report_outlives_one_fault_and_is_applied_once(
    case: Case, lab: Lab, report: Report, proxy: Proxy
) -> None:
    attempt = lab.attempt()
    with meeting(proxy, case, UPDATE, times=1):
        assert report(attempt)
    sent = proxy.matching(*UPDATE)
    assert len(sent) == (1 if case.applied else 2)
    assert [one.applied for one in sent].count(True) == 1
    assert lab.status(attempt) == "COMPLETED"
    assert lab.task(attempt)["outputData"] == DONE.output
    assert lab.task(attempt)["workerId"] == WORKER


@each_case
def test_p6_a_report_that_never_gets_an_answer_ends_with_the_lease(
    case: Case, lab: Lab, report: Report, proxy: Proxy
) -> None:
    """The task itself tells whether it was taken, not the answers."""
    attempt = lab.attempt()
    with meeting(proxy, case, UPDATE, times=None):
        assert report(attempt) is case.applied
    assert lab.status(attempt) == ("COMPLETED" if case.applied else "IN_PROGRESS")


@pytest.mark.parametrize("fault", [Hang, HangAfter], ids=["not applied", "applied"])
def test_t5_the_time_for_the_report_bounds_all_of_it(
    fault: Callable[[], Fault], lab: Lab, proxy: Proxy
) -> None:
    """Its requests too: this client would wait for an hour, and the test with it."""
    attempt = lab.attempt()
    client = ConductorClient(ConductorSettings(proxy.url), call_seconds=3600)
    update = Rule(fault(), *UPDATE, times=None)
    read = Rule(Hang(), *READ, times=None)
    with proxy.during(update, read):
        assert not ConductorBroker(client, SystemClock(), WORKER, 2.0).report(attempt, DONE)
        assert update.met
        assert read.met
    client.close()


def test_a_report_waits_for_a_server_that_comes_back(
    lab: Lab, faulted: ConductorClient, proxy: Proxy
) -> None:
    attempt = lab.attempt()
    clock = ReturningClock(proxy)
    proxy.down()
    assert ConductorBroker(faulted, clock, WORKER, LIMIT).report(attempt, DONE)
    assert clock.slept >= 3
    assert lab.status(attempt) == "COMPLETED"


class ReturningClock(SystemClock):
    """Brings the server back while somebody waits for the third time."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self.slept = 0

    def sleep(self, seconds: float) -> None:
        self.slept += 1
        if self.slept == 3:
            self._proxy.up()


def test_p7_a_report_whose_fate_cannot_be_read_is_not_sent_again(
    lab: Lab, report: Report, proxy: Proxy
) -> None:
    attempt = lab.attempt()
    with proxy.during(Rule(ResetBefore(), *UPDATE, times=None), Rule(Say(503), *READ, times=None)):
        assert not report(attempt)
    assert len(proxy.matching(*UPDATE)) == 1


def test_p7_a_report_is_not_sent_again_for_a_task_that_ended_meanwhile(
    lab: Lab, report: Report, proxy: Proxy
) -> None:
    workflow_id = lab.start()
    task = lab.poll()
    attempt = Attempt(workflow_id, task["taskId"], 0, "step", lab.name)

    class LostAndTerminated:
        def meet(self, exchange: object) -> None:
            lab.truth.terminate(workflow_id, "an operator")
            ResetBefore().meet(exchange)  # type: ignore[arg-type]

    with proxy.during(Rule(LostAndTerminated(), *UPDATE)):
        assert not report(attempt)
    assert len(proxy.matching(*UPDATE)) == 1
    assert lab.status(attempt) == "CANCELED"


def test_r2_a_report_that_landed_counts_even_when_the_workflow_ended_behind_it(
    lab: Lab, report: Report, proxy: Proxy
) -> None:
    attempt = lab.attempt()
    ended = LoseAnswerThen(
        lambda: eventually(
            lambda: (
                (lab.truth.execution(attempt.workflow_instance_id) or {})["status"] == "COMPLETED"
            ),
            "the end of the workflow",
        )
    )
    with proxy.during(Rule(ended, *UPDATE)):
        assert report(attempt)
    assert len(proxy.matching(*UPDATE)) == 1


# --- delayed application --------------------------------------------------------------------------


def test_p7_a_report_that_arrives_twice_counts_once(lab: Lab, report: Report, proxy: Proxy) -> None:
    attempt = lab.attempt()
    held = Hold()
    with proxy.during(Rule(held, *UPDATE)):
        assert report(attempt)
        held.release()
    assert lab.task(attempt)["outputData"] == DONE.output
    assert lab.status(attempt) == "COMPLETED"


def test_p7_a_report_that_arrives_after_the_retry_began_changes_nothing(
    truth: ConductorClient, faulted: ConductorClient, clock: SkippingClock, proxy: Proxy
) -> None:
    lab = new_lab(truth, responseTimeoutSeconds=1)
    attempt = lab.attempt()
    held = Hold()
    with proxy.during(Rule(held, *UPDATE)):
        assert not ConductorBroker(faulted, clock, WORKER, 1).report(attempt, DONE)
        retry = lab.poll()
        held.release()
    assert retry["retryCount"] == 1
    assert lab.status(attempt) == "TIMED_OUT"
    current = truth.task(retry["taskId"])
    assert current is not None
    assert current["outputData"] == {}
    execution = truth.execution(attempt.workflow_instance_id)
    assert execution is not None
    assert execution["status"] == "RUNNING"
