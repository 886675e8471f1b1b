"""Tasks that the broker runs itself; the differential test holds them against Conductor."""

from __future__ import annotations

from typing import Any

import pytest

from perago.errors import WorkflowDefinitionError
from perago.protocol.values import Status
from perago.workflow.records import RunStatus
from tests.broker.definitions import Json, World, fork, join, parsed, simple, system


def started(*tasks: Json, given: Json | None = None, **more: Any) -> World:
    world = World(parsed(*tasks, **more), given or {})
    world.settle()
    return world


def refused(*tasks: Json, **more: Any) -> str:
    with pytest.raises(WorkflowDefinitionError) as caught:
        parsed(*tasks, **more)
    return str(caught.value)


# --- SET_VARIABLE ------------------------------------------------------------------------------


def test_variables_are_what_was_set_last_over_the_definition() -> None:
    world = started(
        simple("a", inputParameters={"x": "${workflow.variables.x}"}),
        system("SET_VARIABLE", "s", x="${a.output.n}", y={"k": "${workflow.variables.x}"}),
        system("SET_VARIABLE", "again", x="${workflow.variables.y.k}", z=None),
        simple("b", inputParameters={"all": "${workflow.variables}"}),
        variables={"x": 1, "d": "kept"},
    )
    assert world.open("a").input == {"x": 1}
    world.finish("a", output={"n": 2})
    assert world.open("b").input == {"all": {"x": 1, "d": "kept", "y": {"k": 1}, "z": None}}
    (first,) = world.attempts("s")
    assert (first.status, first.input, first.output) == (
        Status.COMPLETED,
        {"x": 2, "y": {"k": 1}},
        {},
    )


def test_a_variable_is_seen_by_what_begins_after_it_was_set() -> None:
    read = {"x": "${workflow.variables.x}"}
    world = started(
        fork(
            "f",
            [system("SET_VARIABLE", "s", x=2), simple("a", inputParameters=read)],
            [simple("b", inputParameters=read)],
        ),
        join("j", "a", "b"),
        variables={"x": 1},
    )
    assert [world.open(name).input["x"] for name in "ab"] == [2, 1]
    assert [task.reference_name for task in world.tasks.values()] == ["f", "s", "b", "j", "a"]


def test_variables_survive_a_resume_and_are_not_set_again() -> None:
    world = started(
        system("SET_VARIABLE", "s", x="${workflow.input.x}"),
        simple("a", retryCount=0, inputParameters={"x": "${workflow.variables.x}"}),
        given={"x": 1},
    )
    world.finish("a", Status.FAILED)
    assert world.run.status is RunStatus.FAILED
    world.reopen()
    assert len(world.attempts("s")) == 1
    world.finish("a")
    assert world.run.status is RunStatus.COMPLETED


def test_a_variable_that_nothing_sets_is_refused() -> None:
    read = simple("a", inputParameters={"x": "${workflow.variables.lats}"})
    setting = system("SET_VARIABLE", "s", last=1)
    said = refused(setting, read)
    assert "tasks[1] (a).inputParameters.x: ${workflow.variables.lats} reads a variable" in said
    assert "did you mean 'last'?" in said
    assert "nothing sets" in refused(read, variables={"other": 1})
    assert "nothing sets" in refused(simple("a"), outputParameters={"x": read["inputParameters"]})
    assert parsed(read, variables={"lats": 1})


def test_only_its_input_is_honoured() -> None:
    said = refused({**system("SET_VARIABLE", "s", x=1), "optional": True})
    assert "optional is not honoured here on a SET_VARIABLE task" in said
