"""W9: parallel writers of one branch are refused, before the run or when the run shows them."""

from __future__ import annotations

import itertools

import pytest

from perago.errors import WorkflowDefinitionError
from perago.workflow.parsing import parse_workflow
from perago.workflow.records import RunStatus
from perago.workflow.writers import planned_targets, refuse_parallel_writers
from tests.broker.definitions import (
    Json,
    World,
    flow,
    fork,
    join,
    parsed,
    simple,
    switch,
    writer,
)

MAIN = {"repository": "r", "branch": "main", "ref_type": "commit", "ref": "c0"}
OTHER = {**MAIN, "branch": "other"}
GIVEN: Json = {"workspace": MAIN, "other": OTHER, "branch": "main"}
FROM_INPUT = "${workflow.input.workspace}"
WRITERS = frozenset({"w"})


def clashes(*tasks: Json) -> bool:
    try:
        refuse_parallel_writers(flow(*tasks), WRITERS, "flow.json", GIVEN)
    except WorkflowDefinitionError:
        return True
    return False


def parallel(left: object, right: object, right_name: str = "w") -> list[Json]:
    return [
        writer("first", FROM_INPUT),
        fork("f", [writer("l", left)], [writer("r", right, right_name)]),
        join("j", "l", "r"),
    ]


SAME = [
    (FROM_INPUT, FROM_INPUT),
    (MAIN, FROM_INPUT),
    ("${first.output.workspace}", FROM_INPUT),
    ("${first.output.workspace}", "${first.input.workspace}"),
    ({**MAIN, "branch": "${workflow.input.branch}"}, FROM_INPUT),
    ({**MAIN, "branch": "m${workflow.variables.ain}"}, FROM_INPUT),
    ({**MAIN, "branch": "${first.output.workspace.branch}"}, FROM_INPUT),
    ({**MAIN, "ref": "${first.output.result.ref}"}, FROM_INPUT),
]
DIFFERENT_OR_UNKNOWN = [
    (FROM_INPUT, "${workflow.input.other}"),
    (MAIN, {**MAIN, "repository": "s"}),
    (FROM_INPUT, "${first.output.result.workspace}"),
    (FROM_INPUT, {**MAIN, "branch": "b-${workflow.workflowId}"}),
    (FROM_INPUT, "${workflow.input.missing}"),
]


@pytest.mark.parametrize(("left", "right"), SAME)
def test_the_same_target_is_seen_however_it_is_written(left: object, right: object) -> None:
    tasks = parallel(left, right)
    definition = flow(*tasks, variables={"ain": "ain"})
    with pytest.raises(WorkflowDefinitionError, match="'l' and 'r' may run at the same time"):
        refuse_parallel_writers(definition, WRITERS, given=GIVEN)


@pytest.mark.parametrize(("left", "right"), DIFFERENT_OR_UNKNOWN)
def test_other_targets_and_what_only_a_run_knows_pass(left: object, right: object) -> None:
    assert not clashes(*parallel(left, right))


def test_the_refusal_says_who_where_and_what_to_do() -> None:
    definition = flow(*parallel(FROM_INPUT, MAIN))
    with pytest.raises(WorkflowDefinitionError) as caught:
        refuse_parallel_writers(definition, WRITERS, "flow.json", GIVEN)
    assert caught.value.message == (
        "flow.json: tasks 'l' and 'r' may run at the same time and both write branch 'main'"
        " of repository 'r'"
    )
    assert "one after the other" in caught.value.remedy


def test_a_reader_beside_a_writer_passes() -> None:
    assert not clashes(*parallel(FROM_INPUT, FROM_INPUT, "r"))


def one(ref: str) -> Json:
    return writer(ref, FROM_INPUT)


SHAPES: dict[str, tuple[list[Json], bool]] = {
    "one after the other": ([one("a"), one("b")], False),
    "before and behind a fork": (
        [one("a"), fork("f", [one("b")], [simple("c")]), join("j", "b", "c"), one("d")],
        False,
    ),
    "two tasks of one branch": ([fork("f", [one("a"), one("b")]), join("j", "b")], False),
    "two branches": ([fork("f", [one("a")], [one("b")]), join("j", "a", "b")], True),
    "deep in two branches": (
        [fork("f", [simple("x"), one("a")], [simple("y"), one("b")]), join("j", "a", "b")],
        True,
    ),
    "nested forks, outer branches": (
        [
            fork("f", [fork("g", [one("a")], [simple("x")]), join("i", "a", "x")], [one("b")]),
            join("j", "i", "b"),
        ],
        True,
    ),
    "nested forks, inner branches": (
        [fork("f", [fork("g", [one("a")], [one("b")]), join("i", "a", "b")]), join("j", "i")],
        True,
    ),
    "cases of one switch": ([switch("s", 1, [one("a")], x=[one("b")], y=[one("c")])], False),
    "a case, and behind the switch": ([switch("s", 1, [one("a")]), one("b")], False),
    "a case beside a branch": (
        [fork("f", [switch("s", 1, [one("a")])], [one("b")]), join("j", "s", "b")],
        True,
    ),
    "a branch its join does not wait for": (
        [fork("f", [one("a")], [simple("x")]), join("j", "x"), one("b")],
        True,
    ),
    "the tail of a branch its join does not wait for": (
        [fork("f", [simple("x"), one("a")]), join("j", "x"), one("b")],
        True,
    ),
    "a case its join does not wait for": (
        [fork("f", [switch("s", 1, [one("a")])], [simple("x")]), join("j", "s", "x"), one("b")],
        True,
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape: str) -> None:
    tasks, clash = SHAPES[shape]
    assert clashes(*tasks) is clash


def test_parallel_is_symmetric() -> None:
    for tasks, _ in SHAPES.values():
        order = parsed(*tasks).order
        for left, right in itertools.product(order.before, repeat=2):
            assert order.parallel(left, right) == order.parallel(right, left)


def test_targets_follow_a_chain_through_joins() -> None:
    definition = flow(
        one("a"),
        fork("f", [writer("b", "${a.output.workspace}")], [writer("c", OTHER)]),
        join("j", "b", "c"),
        writer("d", "${j.output.b.workspace}"),
        writer("e", "${j.output.c.workspace}"),
    )
    assert planned_targets(definition, WRITERS, GIVEN) == {
        "a": ("r", "main"),
        "b": ("r", "main"),
        "c": ("r", "other"),
        "d": ("r", "main"),
        "e": ("r", "other"),
    }


def test_what_only_the_run_knew_fails_it_when_it_shows() -> None:
    tasks = parallel(FROM_INPUT, "${first.output.result.workspace}")
    workflow = parse_workflow(flow(*tasks), {"w"})
    refuse_parallel_writers(flow(*tasks), WRITERS, given=GIVEN)
    world = World(workflow, GIVEN, writers=WRITERS)
    world.settle()
    world.finish("first", output={"workspace": MAIN, "result": {"workspace": MAIN}})
    assert world.run.status is RunStatus.FAILED
    assert "'l' and 'r' may run at the same time" in world.run.reason
    assert world.statuses() == {"first": "COMPLETED"}


def test_what_only_the_run_knew_may_turn_out_harmless() -> None:
    world = World(
        parsed(*parallel(FROM_INPUT, "${first.output.result.workspace}")), GIVEN, writers=WRITERS
    )
    world.settle()
    world.finish("first", output={"workspace": MAIN, "result": {"workspace": OTHER}})
    assert world.statuses()["r"] == "SCHEDULED"
