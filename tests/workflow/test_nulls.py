"""What is null when it is read is warned of: nothing fails, on Conductor or here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from perago.workflow.nulls import warn_of_nulls

RATE = "${workflow.variables.rate}"
FIRST = "set it before, or give it a first value"


def step(name: str, kind: str = "SIMPLE", **fields: Any) -> dict[str, Any]:
    return {"name": name, "taskReferenceName": name, "type": kind, **fields}


def reads(name: str, *expressions: str) -> dict[str, Any]:
    return step(name, inputParameters={"params": {"values": list(expressions)}})


def sets(name: str, *variables: str) -> dict[str, Any]:
    return step(name, "SET_VARIABLE", inputParameters=dict.fromkeys(variables, 1))


def fork(*branches: list[Mapping[str, Any]]) -> dict[str, Any]:
    return step("fork", "FORK_JOIN", forkTasks=[*branches])


def join(*names: str) -> dict[str, Any]:
    return step("join", "JOIN", joinOn=[*names])


def switch(*cases: list[Mapping[str, Any]]) -> dict[str, Any]:
    return step("switch", "SWITCH", decisionCases={str(at): case for at, case in enumerate(cases)})


def loop(*body: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    return step("loop", "DO_WHILE", loopOver=[*body], **fields)


def told(*tasks: Mapping[str, Any], **more: Any) -> list[str]:
    return warn_of_nulls({"name": "flow", "tasks": [*tasks], **more}, "flow.json")


READS, SETS = reads("one", RATE), sets("set", "rate")


@pytest.mark.parametrize(
    "tasks",
    [
        [SETS, READS],
        [fork([SETS], [reads("two")]), join("set", "two"), READS],
        [switch([SETS], []), READS],
        [switch([SETS, READS], [])],
        [loop(SETS), READS],
        [loop(SETS, READS)],
        [loop(READS, SETS)],  # From the second round on, it is there.
        [loop(SETS, inputParameters={"rate": RATE})],
        [READS],  # It is refused: nothing sets it.
        [reads("one", "${workflow.variables}", "$${workflow.variables.rate}"), SETS],
    ],
    ids=str,
)
def test_a_variable_that_is_set_before_is_fine(tasks: list[Mapping[str, Any]]) -> None:
    assert told(*tasks) == []


@pytest.mark.parametrize(
    "tasks",
    [
        [READS, SETS],
        [fork([SETS], [READS]), join("set", "one")],
        [fork([SETS], [reads("two")]), join("two"), READS],
        [switch([SETS], [READS])],
        [READS, loop(SETS)],
        [loop(fork([SETS], [READS]), join("set", "one"))],
    ],
    ids=str,
)
def test_a_variable_that_is_not_set_before_is_warned_of(tasks: list[Mapping[str, Any]]) -> None:
    (text,) = told(*tasks)
    assert text == (
        f"flow.json: step 'one': {RATE} is null: 'rate' is set by 'set', which does not run"
        f" before it; {FIRST} in the variables of the workflow"
    )
    assert told(*tasks, variables={"rate": 2}) == []


def test_a_similar_variable_that_is_set_before_is_suggested() -> None:
    (text,) = told(sets("early", "rates"), reads("one", RATE, f"at {RATE}"), SETS)
    assert text.endswith("; did you mean 'rates'?")
    (text,) = told(READS, SETS, variables={"raet": 1})
    assert text.endswith("; did you mean 'raet'?")


def test_the_output_of_a_workflow_is_read_when_all_is_set() -> None:
    assert told(SETS, outputParameters={"rate": RATE}) == []


def test_a_joined_output_of_a_round_has_another_name() -> None:
    body = fork([reads("a")], [reads("b")]), join("a", "b")
    inside, behind = reads("one", "${join.output.a.result.rows}"), reads("two", "${join.output.b}")
    first, second = told(loop(*body, inside), behind)
    assert first == (
        "flow.json: step 'one': ${join.output.a.result.rows} is null: in the loop the output of"
        " 'join' has 'a__1' for the first round, and so on; read ${a.output.result.rows}, which is"
        " that of the newest round"
    )
    assert "step 'two': ${join.output.b} is null" in second
    (last,) = told(loop(*body), outputParameters={"b": "${join.output.b}"})
    assert "outputParameters: ${join.output.b} is null" in last


def test_joined_outputs_that_have_a_value_are_fine() -> None:
    body = fork([reads("a")], [reads("b")]), join("a", "b")
    assert told(*body, reads("one", "${join.output.a.result}")) == []
    whole = reads("one", "${join.output}", "${join.output.a__1}", "${a.output.result}")
    assert told(loop(*body, whole)) == []


@pytest.mark.parametrize("variables", [None, 1, ["rate"], "rate"])
@pytest.mark.parametrize("given", [None, 1, [RATE], {"x": RATE}])
def test_a_definition_of_any_shape_is_read(variables: object, given: object) -> None:
    task = step("one", inputParameters=given)
    assert told(task, variables=variables) == []
    assert told(step("set", "SET_VARIABLE", inputParameters=given), task) == []
    assert told(loopOver=1, outputParameters=given) == []
