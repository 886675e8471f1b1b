"""W9a: writers of one branch that follow each other without reading each other are refused."""

from __future__ import annotations

from typing import Any

import pytest

from perago.errors import WorkflowDefinitionError
from perago.workflow.chain import refuse_unchained_writers

Tasks = list[dict[str, Any]]
GIVEN = "${workflow.input.workspace}"
WRITERS, READERS = {"write"}, {"read"}


def task(reference: str, workspace: object, name: str = "write") -> dict[str, Any]:
    return {
        "name": name,
        "taskReferenceName": reference,
        "type": "SIMPLE",
        "inputParameters": {"workspace": workspace, "params": {}},
    }


def other(kind: str, reference: str, **fields: Any) -> dict[str, Any]:
    return {"name": reference, "taskReferenceName": reference, "type": kind, **fields}


def after(reference: str) -> str:
    return f"${{{reference}.output.workspace}}"


def parts(ref: str, branch: str = "${workflow.input.workspace.branch}") -> dict[str, str]:
    repository = "${workflow.input.workspace.repository}"
    return {"repository": repository, "branch": branch, "ref_type": "commit", "ref": ref}


def switch(default: Tasks, **cases: Tasks) -> dict[str, Any]:
    return other("SWITCH", "choose", decisionCases=cases, defaultCase=default)


def fork(*branches: Tasks) -> Tasks:
    return [other("FORK_JOIN", "fork", forkTasks=[*branches]), other("JOIN", "join")]


def loop(*body: dict[str, Any]) -> dict[str, Any]:
    return other("DO_WHILE", "loop", loopOver=[*body])


A = task("a", GIVEN)

REFUSED: dict[str, tuple[Tasks, str, str]] = {
    "both read the input": ([A, task("b", GIVEN)], "b", "a"),
    "whole and in parts": ([A, task("b", parts("${workflow.input.workspace.ref}"))], "b", "a"),
    "a fixed commit": ([A, task("b", parts("0" * 64))], "b", "a"),
    "one is jumped over": ([A, task("b", after("a")), task("c", after("a"))], "c", "b"),
    "a reader between that reads the input": (
        [A, task("look", GIVEN, "read"), task("b", after("look"))],
        "b",
        "a",
    ),
    "the input of an earlier task": ([A, task("b", "${a.input.workspace}")], "b", "a"),
    "something else between": ([A, other("HTTP", "h"), task("b", GIVEN)], "b", "a"),
    "behind a switch that may have written": (
        [A, switch([], x=[task("b", after("a"))]), task("c", after("a"))],
        "c",
        "b",
    ),
    "one case of a switch writes": ([switch([], x=[A]), task("b", GIVEN)], "b", "a"),
    "inside a case": ([A, switch([], x=[task("b", GIVEN)])], "b", "a"),
    "in one branch of a fork": (
        fork([A, task("b", GIVEN)], [other("HTTP", "h")]),
        "b",
        "a",
    ),
    "behind a join": (
        [*fork([A], [other("HTTP", "h")]), task("b", GIVEN)],
        "b",
        "a",
    ),
    "before a fork": (
        [A, *fork([task("b", GIVEN)], [other("HTTP", "h")])],
        "b",
        "a",
    ),
    "a loop reads the same input every round": ([loop(A)], "a", "a"),
    "a loop of two reads the input again": ([loop(A, task("b", after("a")))], "a", "b"),
    "a loop behind a writer": ([A, loop(task("b", after("a")))], "b", "b"),
    "behind a case that goes on while another ends the workflow": (
        [switch([other("TERMINATE", "end")], x=[A]), task("b", GIVEN)],
        "b",
        "a",
    ),
}

ACCEPTED: dict[str, Tasks] = {
    "one writer": [A],
    "one after the other": [A, task("b", after("a")), task("c", after("b"))],
    "in parts": [A, task("b", parts("${a.output.workspace.ref}"))],
    "through a reader": [A, task("look", after("a"), "read"), task("b", after("look"))],
    "by the input of a task that read it": [
        A,
        task("look", after("a"), "read"),
        task("b", "${look.input.workspace}"),
    ],
    "readers of the input": [A, task("look", GIVEN, "read"), task("see", GIVEN, "read")],
    "exclusive cases": [switch([task("b", GIVEN)], x=[A])],
    "exclusive cases behind a writer": [
        A,
        switch([task("b", after("a"))], x=[task("c", after("a"))]),
    ],
    "another branch": [A, task("b", parts("0" * 64, "other"))],
    "another repository": [A, task("b", {**parts("0" * 64), "repository": "elsewhere"})],
    "through a join": [
        *fork([A], [other("HTTP", "h")]),
        task("b", "${join.output.a.workspace}"),
    ],
    "a loop that reads its own last output": [loop(task("b", after("b")))],
    "a loop behind a writer that reads its own last output": [A, loop(task("b", after("b")))],
    "a case that ends the workflow": [
        switch([], x=[A, other("TERMINATE", "end")]),
        task("b", GIVEN),
    ],
    "an optional tail": [A, switch([], x=[task("b", after("a"))]), task("c", after("b"))],
}

UNTRACEABLE: dict[str, Tasks] = {
    "a variable": [A, task("b", "${workflow.variables.workspace}")],
    "a task of others": [A, task("x", after("a"), "foreign"), task("b", after("x"))],
    "the output of a system task": [A, other("INLINE", "i"), task("b", "${i.output.result}")],
    "an expression inside an expression": [
        A,
        task("b", "${${workflow.input.name}.output.workspace}"),
    ],
    "a text with an expression in it": [A, task("b", parts("x${a.output.workspace.ref}"))],
    "no workspace at all": [A, {**task("b", None), "inputParameters": {}}],
}


@pytest.mark.parametrize("name", REFUSED)
def test_w9a_a_writer_that_does_not_read_the_writer_before_it_is_refused(name: str) -> None:
    tasks, later, earlier = REFUSED[name]
    with pytest.raises(WorkflowDefinitionError) as told:
        refuse_unchained_writers({"tasks": tasks}, WRITERS, READERS, "flow.json")
    assert f"flow.json: task '{later}' writes branch" in told.value.message
    assert f"after '{earlier}' did" in told.value.message
    in_a_loop = "loop" in name
    wanted = "${workflow.variables.NAME}" if in_a_loop else f"${{{earlier}.output.workspace}}"
    assert wanted in told.value.remedy


@pytest.mark.parametrize("name", ACCEPTED)
def test_w9a_others_pass_without_a_word(name: str) -> None:
    assert refuse_unchained_writers({"tasks": ACCEPTED[name]}, WRITERS, READERS, "flow.json") == []


@pytest.mark.parametrize("name", UNTRACEABLE)
def test_w9a_what_cannot_be_traced_is_a_warning(name: str) -> None:
    tasks = UNTRACEABLE[name]
    (warning,) = refuse_unchained_writers({"tasks": tasks}, WRITERS, READERS, "flow.json")
    assert warning.startswith("flow.json: it cannot be told wh")
    assert "'b'" in warning
    assert "'a'" in warning


def test_w9a_a_single_writer_that_cannot_be_traced_needs_no_warning() -> None:
    tasks = [task("b", "${workflow.variables.workspace}")]
    assert refuse_unchained_writers({"tasks": tasks}, WRITERS, READERS, "flow.json") == []


def test_w9a_two_inputs_that_name_one_branch_are_seen_when_the_input_is_known() -> None:
    tasks = [task("a", "${workflow.input.one}"), task("b", "${workflow.input.two}")]
    here = {"repository": "lake", "branch": "main", "ref_type": "commit", "ref": "0" * 64}
    definition = {"tasks": tasks}
    assert refuse_unchained_writers(definition, WRITERS, READERS, "flow.json") == []
    with pytest.raises(WorkflowDefinitionError, match="'main' of repository 'lake'"):
        refuse_unchained_writers(definition, WRITERS, READERS, "f", {"one": here, "two": here})
    there = {**here, "branch": "other"}
    given = {"one": here, "two": there}
    assert refuse_unchained_writers(definition, WRITERS, READERS, "f", given) == []


@pytest.mark.parametrize(
    "tasks",
    [None, {}, [None], [{"forkTasks": [None]}], [{"decisionCases": []}], [{"inputParameters": 3}]],
)
def test_what_has_no_shape_is_left_to_others(tasks: object) -> None:
    assert refuse_unchained_writers({"tasks": tasks}, WRITERS, READERS, "flow.json") == []
