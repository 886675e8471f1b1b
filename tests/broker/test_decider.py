from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perago.brokers.local.actions import Alert, TimeOut
from perago.protocol.values import Status
from perago.workflow.controls import Controls, RetryLogic, TimeoutAction
from perago.workflow.records import OPEN, SUCCESSFUL, RunStatus, TaskRecord
from perago.workflow.retry import delay_seconds
from perago.workflow.tasks import SimpleTask, TaskKind, every
from tests.broker.definitions import (
    Json,
    World,
    fork,
    join,
    parsed,
    simple,
    switch,
)

DONE = Status.COMPLETED
FAILED = Status.FAILED
TERMINAL = Status.FAILED_WITH_TERMINAL_ERROR
TIMED_OUT = Status.TIMED_OUT


def started(*tasks: Json, **more: Any) -> World:
    world = World(parsed(*tasks, **more), {"a": 1})
    world.settle()
    return world


# --- one task, every sequence of outcomes ------------------------------------------------------

OUTCOMES = (DONE, FAILED, TERMINAL, TIMED_OUT, "lost")


@pytest.mark.parametrize("optional", [False, True])
@pytest.mark.parametrize("policy", [TimeoutAction.RETRY, TimeoutAction.TIME_OUT_WF])
@pytest.mark.parametrize("logic", RetryLogic)
@pytest.mark.parametrize("limit", [0, 1, 2])
def test_every_sequence_of_three_outcomes(
    limit: int, logic: RetryLogic, policy: TimeoutAction, optional: bool
) -> None:
    """The rules, written a second time as a straight loop over the outcomes."""
    controls = Controls(
        retry_count=limit, retry_logic=logic, retry_delay_seconds=10, timeout_policy=policy
    )
    for outcomes in itertools.product(OUTCOMES, repeat=3):
        world = World(parsed(simple("a", optional=optional)), controls={"t": controls})
        world.settle()
        failures, expected = 0, RunStatus.RUNNING
        for number, outcome in enumerate(outcomes):
            attempt = world.open("a")
            assert (attempt.retry_count, attempt.seq) == (number, number + 1)
            world.now += 1000
            lost = outcome == "lost"
            world.finish("a", FAILED if lost else Status(outcome), lost=lost)
            if outcome == DONE:
                expected = RunStatus.COMPLETED
            elif not lost:
                failures += 1
                ends = outcome == TIMED_OUT and policy is TimeoutAction.TIME_OUT_WF
                if ends or outcome == TERMINAL or failures > limit:
                    given_up = RunStatus.TIMED_OUT if outcome == TIMED_OUT else RunStatus.FAILED
                    expected = RunStatus.COMPLETED if optional and not ends else given_up
            assert world.run.status is expected, outcomes
            if expected is not RunStatus.RUNNING:
                break
            wait = 0.0 if lost else delay_seconds(controls, failures, 0)
            assert world.open("a").start_at == world.now + wait, outcomes
        if optional and expected is RunStatus.COMPLETED and outcome != DONE:
            assert world.statuses() == {"a": "COMPLETED_WITH_ERRORS"}


def test_a_retry_is_a_new_task_with_the_same_name_and_input() -> None:
    world = World(
        parsed(simple("a", inputParameters={"id": "${CPEWF_TASK_ID}", "p": "${workflow.input}"})),
        {"n": 1},
    )
    world.settle()
    world.finish("a", FAILED)
    first, second = world.attempts("a")
    assert first.task_id != second.task_id
    assert (second.retry_count, second.seq) == (1, 2)
    assert second.input == {"id": second.task_id, "p": {"n": 1}}
    assert first.input == {"id": first.task_id, "p": {"n": 1}}


def test_deciding_twice_gives_the_same_answer() -> None:
    world = World(parsed(fork("f", [simple("a")], [simple("b")]), join("j", "a", "b")))
    assert world.ask() == world.ask()


def test_the_workflow_task_overrides_the_retry_count() -> None:
    world = World(parsed(simple("a", retryCount=0)), controls={"t": Controls(retry_count=5)})
    world.settle()
    world.finish("a", FAILED)
    assert world.run.status is RunStatus.FAILED
    assert "task 'a' ended FAILED at attempt 1" in world.run.reason
    assert "retryCount 0 is used up: because" in world.run.reason


def test_jitter_is_a_number_from_outside() -> None:
    controls = Controls(retry_delay_seconds=10, backoff_jitter_ms=1000)
    world = World(parsed(simple("a")), controls={"t": controls}, jitter=0.25)
    world.settle()
    world.finish("a", FAILED)
    assert world.open("a").start_at == world.now + 10.25


def test_a_delay_that_passed_while_nobody_ran_is_over() -> None:
    world = World(parsed(simple("a")), controls={"t": Controls(retry_delay_seconds=60)})
    world.settle()
    world.end(world.claim("a"), FAILED)
    world.now += 500
    world.settle()
    assert world.open("a").start_at == world.now - 440


# --- shapes ------------------------------------------------------------------------------------


def test_tasks_run_one_behind_the_other_and_read_each_other() -> None:
    world = started(
        simple("a", inputParameters={"x": "${workflow.input.a}"}),
        simple("b", inputParameters={"x": "${a.output.n}", "was": "${a.status}"}),
        outputParameters={"n": "${b.output.n}", "id": "${workflow.workflowId}"},
    )
    assert world.statuses() == {"a": "SCHEDULED"}
    assert world.open("a").input == {"x": 1}
    world.finish("a", output={"n": 2})
    assert world.open("b").input == {"x": 2, "was": "COMPLETED"}
    world.finish("b", output={"n": 3})
    assert world.run.status is RunStatus.COMPLETED
    assert world.run.output == {"n": 3, "id": "run-1"}


def test_without_output_parameters_the_last_task_is_the_output() -> None:
    world = started(simple("a"), simple("b"))
    world.finish("a", output={"n": 1})
    world.finish("b", output={"n": 2})
    assert world.run.output == {"n": 2}


def test_a_fork_starts_all_branches_and_its_join_waits() -> None:
    world = started(
        fork("f", [simple("a"), simple("b")], [simple("c")]),
        join("j", "b", "c"),
        simple("d", inputParameters={"x": "${j.output.c.n}"}),
    )
    waiting = {"f": "COMPLETED", "a": "SCHEDULED", "c": "SCHEDULED", "j": "IN_PROGRESS"}
    assert world.statuses() == waiting
    world.finish("c", output={"n": 7})
    world.finish("a")
    assert world.statuses()["j"] == "IN_PROGRESS"
    world.finish("b", output={"n": 8})
    (joined,) = world.attempts("j")
    assert joined.output == {"b": {"n": 8}, "c": {"n": 7}}
    assert world.open("d").input == {"x": 7}


def test_a_join_that_waits_for_some_lets_the_run_end_only_when_all_are_done() -> None:
    world = started(fork("f", [simple("a")], [simple("b")]), join("j", "a"), simple("c"))
    world.finish("a")
    world.finish("c")
    assert world.ask().actions == ()
    world.finish("b")
    assert world.run.status is RunStatus.COMPLETED


@pytest.mark.parametrize("running", ["SCHEDULED", "IN_PROGRESS"])
def test_a_failed_branch_cancels_its_siblings(running: str) -> None:
    world = started(fork("f", [simple("a", retryCount=0)], [simple("b")]), join("j", "a", "b"))
    if running == "IN_PROGRESS":
        world.claim("b")
    world.finish("a", FAILED)
    assert world.run.status is RunStatus.FAILED
    ends = {"f": "COMPLETED", "a": "FAILED", "b": "CANCELED", "j": "CANCELED"}
    assert world.statuses() == ends


def test_an_optional_branch_that_fails_is_joined() -> None:
    world = started(
        fork("f", [simple("a", retryCount=0, optional=True)], [simple("b")]), join("j", "a", "b")
    )
    world.finish("a", FAILED, output={"half": 1})
    assert world.statuses()["a"] == "COMPLETED_WITH_ERRORS"
    world.finish("b")
    assert world.run.status is RunStatus.COMPLETED
    assert world.run.output == {"a": {"half": 1}}
    assert world.statuses()["j"] == "COMPLETED_WITH_ERRORS"
    (joined,) = world.attempts("j")
    assert joined.reason == f"t/{world.attempts('a')[0].task_id} completed with errors"


@pytest.mark.parametrize(
    ("value", "ref"),
    [
        ("big", "x"),
        ("small", "y"),
        ("none", "z"),
        (None, "n"),
        (True, "t"),
        (3, "three"),
        (1.5, "half"),
    ],
)
def test_a_switch_runs_the_case_of_its_value(value: object, ref: str) -> None:
    cases = {"big": "x", "small": "y", "null": "n", "true": "t", "3": "three", "1.5": "half"}
    tasks = {case: [simple(name)] for case, name in cases.items()}
    world = World(
        parsed(
            switch("s", "${workflow.input.v}", [simple("z")], **tasks),
            simple("behind", inputParameters={"case": "${s.output.evaluationResult[0]}"}),
        ),
        {"v": value},
    )
    world.settle()
    assert world.statuses() == {"s": "COMPLETED", ref: "SCHEDULED"}
    world.finish(ref)
    assert world.open("behind").input == {"case": world.attempts("s")[0].input["case"]}


def test_a_switch_without_a_case_goes_on() -> None:
    world = started(switch("s", "x"), simple("a", inputParameters={"n": "${s.output.none}"}))
    assert world.statuses() == {"s": "COMPLETED", "a": "SCHEDULED"}
    world = started(switch("s", "x"))
    assert world.run.status is RunStatus.COMPLETED
    assert world.run.output == {"evaluationResult": ["x"], "selectedCase": "x"}
    world = started(switch("s", "x", [simple("a")], x=[]))
    assert world.run.status is RunStatus.COMPLETED, "an empty case is not the default"


def test_a_task_of_a_case_that_was_not_taken_reads_as_null() -> None:
    world = started(
        switch("s", "x", [simple("a")], y=[simple("b")]),
        simple("c", inputParameters={"b": "${b.output.n}"}),
    )
    world.finish("a")
    assert world.open("c").input == {"b": None}


def test_a_start_delay_is_waited_for() -> None:
    world = started(simple("a", startDelay=30))
    assert world.open("a").start_at == world.now + 30
    assert world.ask().wake_at == world.now + 30


# --- time --------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", TimeoutAction)
@pytest.mark.parametrize("optional", [False, True])
def test_a_task_that_takes_too_long(policy: TimeoutAction, optional: bool) -> None:
    controls = Controls(timeout_seconds=30, timeout_policy=policy, retry_count=1)
    world = World(parsed(simple("a", optional=optional)), controls={"t": controls})
    world.settle()
    world.now += 100  # waiting for an executor is not running
    world.claim("a")
    assert world.ask().wake_at == world.now + 30
    world.now += 29
    assert not world.ask().actions
    world.now += 1
    (action,) = world.ask().actions
    if policy is TimeoutAction.ALERT_ONLY:
        assert isinstance(action, Alert)
        return
    assert isinstance(action, TimeOut)
    assert action.reason == f"timeoutSeconds 30 exceeded (policy {policy})"
    world.settle()
    if policy is TimeoutAction.RETRY:
        assert world.open("a").retry_count == 1
    else:
        assert world.run.status is RunStatus.TIMED_OUT


@pytest.mark.parametrize("claimed", [False, True])
def test_all_attempts_together_take_too_long(claimed: bool) -> None:
    controls = Controls(
        total_timeout_seconds=100, timeout_policy=TimeoutAction.RETRY, retry_delay_seconds=10
    )
    world = World(parsed(simple("a")), controls={"t": controls})
    world.settle()
    world.now += 50
    world.finish("a", FAILED)
    assert world.open("a").start_at == world.now + 10
    if claimed:
        world.claim("a")
    world.now += 50
    world.settle()
    assert world.run.status is RunStatus.TIMED_OUT
    assert "totalTimeoutSeconds 100 exceeded" in world.run.reason


@pytest.mark.parametrize("policy", [TimeoutAction.TIME_OUT_WF, TimeoutAction.ALERT_ONLY])
def test_a_workflow_that_takes_too_long(policy: TimeoutAction) -> None:
    world = started(simple("a"), timeoutSeconds=60, timeoutPolicy=str(policy))
    world.claim("a")
    assert world.ask().wake_at == world.now + 60
    world.now += 60
    if policy is TimeoutAction.ALERT_ONLY:
        assert [type(action) for action in world.ask().actions] == [Alert]
        return
    world.settle()
    assert world.run.status is RunStatus.TIMED_OUT
    assert world.statuses() == {"a": "CANCELED"}


# --- resuming ----------------------------------------------------------------------------------


def test_a_failed_run_goes_on_with_a_fresh_budget() -> None:
    controls = Controls(retry_count=1, retry_logic=RetryLogic.EXPONENTIAL_BACKOFF)
    world = World(
        parsed(simple("a"), fork("f", [simple("b")], [simple("c")]), join("j", "b", "c")),
        controls={"t": controls},
    )
    world.settle()
    world.finish("a")
    world.finish("b", FAILED)
    world.finish("b", FAILED)
    assert world.run.status is RunStatus.FAILED
    assert world.statuses()["c"] == "CANCELED"
    assert world.statuses()["j"] == "CANCELED"
    world.now += 10
    world.reopen()
    assert world.statuses()["j"] == "IN_PROGRESS"
    assert world.open("b").retry_count == 2
    assert world.open("c").retry_count == 1
    assert world.open("b").start_at == world.now
    world.finish("b", FAILED)
    assert world.open("b").start_at == world.now + 60  # the first failure of this budget
    world.finish("b", FAILED)
    assert world.run.status is RunStatus.FAILED
    assert len(world.attempts("a")) == 1


def test_a_lost_attempt_is_tried_at_once_and_costs_nothing() -> None:
    world = World(parsed(simple("a")), controls={"t": Controls(retry_count=0)})
    world.settle()
    for number in range(5):
        assert world.open("a").retry_count == number
        assert world.open("a").start_at == world.now
        world.finish("a", FAILED, lost=True)
    world.finish("a", FAILED)
    assert world.run.status is RunStatus.FAILED


# --- any workflow, any outcomes ----------------------------------------------------------------

names = itertools.count()


@st.composite
def task_lists(draw: st.DrawFn, depth: int = 2) -> list[Json]:
    tasks: list[Json] = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["simple", "fork", "switch"] if depth else ["simple"]))
        ref = f"{kind}{next(names)}"
        if kind == "simple":
            more: Json = {"optional": draw(st.booleans()), "retryCount": draw(st.integers(0, 2))}
            tasks.append(simple(ref, **more))
        elif kind == "fork":
            branches = draw(st.lists(task_lists(depth - 1), min_size=1, max_size=3))
            ends = [branch[-1]["taskReferenceName"] for branch in branches]
            some = draw(st.lists(st.sampled_from(ends), min_size=1, unique=True))
            tasks += [fork(ref, *branches), join(f"join{next(names)}", *some)]
        else:
            cases = {case: draw(task_lists(depth - 1)) for case in ("x", "y")}
            tasks.append(switch(ref, draw(st.sampled_from(["x", "y", "z"])), **cases))
    return tasks


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(task_lists(), st.data())
def test_any_workflow_comes_to_an_end_in_order(tasks: list[Json], data: st.DataObject) -> None:
    world = World(parsed(*tasks), controls={"t": Controls(retry_delay_seconds=0)})
    world.settle()
    outcomes = st.sampled_from([DONE, DONE, DONE, FAILED, TERMINAL, "lost"])
    for _ in range(300):
        waiting = [
            task
            for task in world.tasks.values()
            if task.status in OPEN and task.kind is TaskKind.SIMPLE
        ]
        if world.run.status is not RunStatus.RUNNING:
            break
        assert waiting, "the run is neither over nor waiting for anything"
        task = data.draw(st.sampled_from(waiting))
        check_order(world, task)
        outcome = data.draw(outcomes)
        world.now += 1
        lost = outcome == "lost"
        world.finish(task.reference_name, FAILED if lost else Status(outcome), lost=lost)
    check_records(world)
    if world.run.status is RunStatus.COMPLETED:
        latest = {task.reference_name: task for task in world.tasks.values()}
        assert all(task.status in SUCCESSFUL for task in latest.values())
        assert {task.reference_name for task in world.workflow.tasks} <= set(latest)


def check_order(world: World, task: TaskRecord) -> None:
    """What the order calls finished is finished, or was never to run."""
    latest = {found.reference_name: found for found in world.tasks.values()}
    for name in world.workflow.order.before[task.reference_name]:
        assert name not in latest or latest[name].status in SUCCESSFUL, name


def check_records(world: World) -> None:
    records = list(world.tasks.values())
    assert [record.seq for record in records] == list(range(1, len(records) + 1))
    for task in every(world.workflow.tasks):
        attempts = world.attempts(task.reference_name)
        assert [record.retry_count for record in attempts] == list(range(len(attempts)))
        if not isinstance(task, SimpleTask):
            assert len(attempts) <= 1
    if world.run.status is not RunStatus.RUNNING:
        assert not [record for record in records if record.status in OPEN]
