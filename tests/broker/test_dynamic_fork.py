"""FORK_JOIN_DYNAMIC in the local broker: what its input lists is run, or refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from perago.errors import WorkflowDefinitionError
from perago.protocol.values import Status
from perago.workflow.controls import Controls
from perago.workflow.records import RunStatus
from tests.broker.definitions import Json, World, fork, join, loop, parsed, simple, system, writer

DONE = Status.COMPLETED
PLACE = {"repository": "r", "branch": "main", "ref_type": "commit", "ref": "c"}


def dynamic(ref: str = "d", **more: Any) -> Json:
    named = {"dynamicForkTasksParam": "tasks", "dynamicForkTasksInputParamName": "inputs"}
    given = {"tasks": "${workflow.input.tasks}", "inputs": "${workflow.input.inputs}"}
    return {**system("FORK_JOIN_DYNAMIC", ref, **given), **named, **more}


def started(tasks: object, inputs: object = None, *rest: Json, **more: Any) -> World:
    given = {"tasks": tasks, "inputs": {} if inputs is None else inputs}
    known = {"t": Controls(), "w": Controls()}
    world = World(parsed(dynamic(), join("j"), *rest), given, known, **more)
    world.settle()
    return world


def test_listed_tasks_run_side_by_side_and_the_join_waits_for_all() -> None:
    inputs = {"a": {"n": 1}, "nobody": {"n": 3}}
    world = started([simple("a"), simple("b", inputParameters={"m": 2})], inputs, simple("z"))
    assert world.open("a").input == {"n": 1}
    assert world.open("b").input == {"m": 2}
    world.end(world.open("a"), DONE, {"x": 1})
    world.settle()
    assert world.open("j").input == {"joinOn": ["a", "b"]}
    world.end(world.open("b"), DONE, {"x": 2})
    world.settle()
    world.end(world.open("z"), DONE)
    world.settle()
    assert world.run.status is RunStatus.COMPLETED


def test_what_was_listed_stays_when_the_run_is_decided_again() -> None:
    """The record of the fork has the tasks: nothing is read from the input a second time."""
    world = started([simple("a")])
    fork_record = next(task for task in world.tasks.values() if task.reference_name == "d")
    assert fork_record.input["forkedTasks"] == ["a"]
    assert world.ask().actions == ()


@pytest.mark.parametrize(
    ("tasks", "inputs", "problem"),
    [
        pytest.param("abc", {}, "is not a list", id="text"),
        pytest.param(None, {}, "is not a list", id="null"),
        pytest.param([1], {}, "d.tasks[0] is not a task", id="number"),
        pytest.param([simple("a")], [1], "is not an object", id="inputs"),
        pytest.param([simple("a")], {"a": 5}, "input of task 'a' is not an object", id="input"),
        pytest.param([simple("a", "unknown")], {}, "is not a known task", id="unknown"),
        pytest.param([simple("j")], {}, "is called 'j', too", id="taken"),
        pytest.param([simple("a"), simple("a")], {}, "are called 'a'", id="twice"),
        pytest.param([system("WAIT", "a")], {}, "only SIMPLE and HUMAN", id="kind"),
        pytest.param([{"name": "t"}], {}, "taskReferenceName", id="no name"),
        pytest.param([simple("a", startDelay=5)], {}, "startDelay is not honoured", id="delay"),
    ],
)
def test_what_cannot_be_run_fails_the_run_and_starts_nothing(
    tasks: object, inputs: object, problem: str
) -> None:
    world = started(tasks, inputs)
    assert world.run.status is RunStatus.FAILED
    assert problem in world.run.reason
    assert world.tasks == {}


def test_w9_two_listed_tasks_that_write_one_branch_are_refused() -> None:
    world = started([writer("a", PLACE), writer("b", PLACE)], writers=frozenset({"w"}))
    assert world.run.status is RunStatus.FAILED
    assert "both write branch 'main'" in world.run.reason


def test_w9_a_listed_writer_beside_one_of_the_definition_is_refused() -> None:
    given = {"tasks": [writer("a", PLACE)], "inputs": {}}
    known = {"t": Controls(), "w": Controls()}
    for branches in (
        ([writer("x", PLACE)], [dynamic(), join("i")]),
        ([dynamic(), join("i")], [writer("x", PLACE)]),
    ):
        names = [branch[-1]["taskReferenceName"] for branch in branches]
        world = World(
            parsed(fork("f", *branches), join("j", *names)),
            given,
            known,
            writers=frozenset({"w"}),
        )
        world.settle()
        assert world.run.status is RunStatus.FAILED
        assert "may run at the same time" in world.run.reason


def test_w9_a_writer_behind_the_join_follows_them() -> None:
    world = started(
        [writer("a", PLACE)], {}, writer("z", "${workflow.input.place}"), writers=frozenset({"w"})
    )
    world.end(world.open("a"), DONE, {"workspace": PLACE})
    world.settle()
    assert world.open("z").status is Status.SCHEDULED


@pytest.mark.parametrize(
    ("tasks", "problem"),
    [
        ([dynamic()], "without a JOIN"),
        ([dynamic(), join("j", "a")], "joinOn names tasks"),
        ([fork("f", [simple("a")]), join("j")], "joinOn is empty"),
        ([dynamic(dynamicForkTasksParam="taks"), join("j")], "did you mean 'tasks'?"),
        ([loop("l", "true", dynamic(), join("j"))], "dynamic fork 'd' inside"),
    ],
)
def test_a_definition_that_could_not_run_is_refused(tasks: list[Json], problem: str) -> None:
    with pytest.raises(WorkflowDefinitionError) as caught:
        parsed(*tasks)
    assert problem in str(caught.value)
