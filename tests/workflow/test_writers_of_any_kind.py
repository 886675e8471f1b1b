"""W9 on definitions whose input is not known yet."""

from __future__ import annotations

from typing import Any

import pytest

from perago.errors import WorkflowDefinitionError
from perago.workflow.writers import refuse_parallel_writers

GIVEN = "${workflow.input.workspace}"
WRITERS = {"write", "prepare"}


def task(reference: str, workspace: object, name: str = "write") -> dict[str, Any]:
    given = {} if workspace is None else {"workspace": workspace}
    return {
        "name": name,
        "taskReferenceName": reference,
        "type": "SIMPLE",
        "inputParameters": {"params": {}, **given},
    }


def other(kind: str, reference: str, **fields: Any) -> dict[str, Any]:
    return {"name": reference, "taskReferenceName": reference, "type": kind, **fields}


def fork(*branches: list[dict[str, Any]], reference: str = "fork") -> dict[str, Any]:
    return other("FORK_JOIN", reference, forkTasks=list(branches))


def at(repository: str, branch: str) -> dict[str, str]:
    return {"repository": repository, "branch": branch, "ref_type": "commit", "ref": "a"}


PARTS = at("${workflow.input.workspace.repository}", "${ workflow.input.workspace.branch }")

REFUSED: dict[str, list[dict[str, Any]]] = {
    "the same expression": [fork([task("a", GIVEN)], [task("b", GIVEN)])],
    "the same names": [fork([task("a", at("r", "main"))], [task("b", at("r", "main"))])],
    "whole and in parts": [fork([task("a", GIVEN)], [task("b", PARTS)])],
    "passed on by an earlier task": [
        task("first", GIVEN, "prepare"),
        fork([task("a", "${first.output.workspace}")], [task("b", GIVEN)]),
    ],
    "passed on twice": [
        task("first", GIVEN),
        task("second", "${first.output.workspace}"),
        fork([task("a", "${second.output.workspace}")], [task("b", "${first.input.workspace}")]),
    ],
    "passed on by a reader": [
        task("look", GIVEN, "read"),
        fork([task("a", "${look.output.workspace}")], [task("b", GIVEN)]),
    ],
    "deep inside": [
        fork(
            [other("SWITCH", "s", decisionCases={"x": [task("a", GIVEN)]}, defaultCase=[])],
            [other("DO_WHILE", "d", loopOver=[task("b", GIVEN)])],
        )
    ],
    "fork in fork": [
        fork(
            [fork([task("a", GIVEN)], [other("HTTP", "h")], reference="inner")], [task("b", GIVEN)]
        )
    ],
    "behind an unknown kind": [
        other("BRAND_NEW", "x"),
        fork([task("a", GIVEN)], [task("b", GIVEN)]),
    ],
    "a join that does not wait for it": [
        fork([task("a", GIVEN)], [other("HTTP", "h")]),
        other("JOIN", "j", joinOn=["h"]),
        task("b", GIVEN),
    ],
    "a join that waits for nothing": [
        fork([task("a", GIVEN)], [other("HTTP", "h")]),
        other("JOIN", "j"),
        task("b", GIVEN),
    ],
    "output of a system task": [
        other("INLINE", "make"),
        fork([task("a", "${make.output.result}")], [task("b", "${make.output.result}")]),
    ],
}

ACCEPTED: dict[str, list[dict[str, Any]]] = {
    "one after the other": [task("a", GIVEN), task("b", "${a.output.workspace}")],
    "in one branch": [fork([task("a", GIVEN), task("b", GIVEN)], [other("HTTP", "h")])],
    "two cases of a switch": [
        other("SWITCH", "s", decisionCases={"x": [task("a", GIVEN)], "y": [task("b", GIVEN)]})
    ],
    "different branches": [fork([task("a", at("r", "x"))], [task("b", at("r", "y"))])],
    "different repositories": [fork([task("a", at("q", "x"))], [task("b", at("r", "x"))])],
    "one only reads": [fork([task("a", GIVEN)], [task("b", GIVEN, "read")])],
    "different expressions": [fork([task("a", GIVEN)], [task("b", "${workflow.input.other}")])],
    "nothing is known": [fork([task("a", None)], [task("b", None)])],
    "behind the join": [
        fork([task("a", GIVEN)], [other("HTTP", "h")]),
        other("JOIN", "j", joinOn=["a", "h"]),
        task("b", GIVEN),
    ],
    "two forks, one after the other": [
        fork([task("a", GIVEN)], [other("HTTP", "h")]),
        other("JOIN", "j", joinOn=["a", "h"]),
        fork([task("b", GIVEN)], [other("HTTP", "i")], reference="later"),
    ],
    "an expression in a circle": [
        fork([task("a", "${b.output.workspace}")], [task("b", "${a.output.workspace}")])
    ],
}


@pytest.mark.parametrize("name", REFUSED)
def test_w9_two_writers_of_one_branch_side_by_side_are_refused(name: str) -> None:
    with pytest.raises(WorkflowDefinitionError, match=r"flow.json: tasks 'a' and 'b'") as told:
        refuse_parallel_writers({"tasks": REFUSED[name]}, WRITERS, "flow.json")
    assert told.value.remedy


@pytest.mark.parametrize("name", ACCEPTED)
def test_w9_others_are_not(name: str) -> None:
    refuse_parallel_writers({"tasks": ACCEPTED[name]}, WRITERS, "flow.json")


@pytest.mark.parametrize(
    "tasks",
    [None, {}, [None], [{"forkTasks": [None]}], [{"decisionCases": []}], [{"inputParameters": 3}]],
)
def test_what_has_no_shape_is_left_to_others(tasks: object) -> None:
    refuse_parallel_writers({"tasks": tasks}, WRITERS, "flow.json")
