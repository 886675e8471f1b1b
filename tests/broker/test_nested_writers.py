"""W9 and W9a see through sub workflows: writers inside count where the step that calls stands."""

from __future__ import annotations

from typing import Any

import pytest

from perago.errors import WorkflowDefinitionError
from perago.workflow.chain import refuse_unchained_writers
from perago.workflow.writers import refuse_parallel_writers
from tests.broker.definitions import (
    Json,
    flow,
    fork,
    join,
    loop,
    simple,
    sub,
    switch,
    system,
    writer,
)

WRITERS = frozenset({"w"})
READERS = frozenset({"r"})
GIVEN = "${workflow.input.workspace}"


def child(*tasks: Json, name: str = "child", **more: Any) -> Json:
    given: Json = {"name": name, "outputParameters": {"workspace": "${c.output.workspace}"}}
    return flow(*tasks, **{**given, **more})


WRITES = child(writer("c", GIVEN))
"""It writes the branch that it is given, and hands on what it published."""
READS = child(writer("c", GIVEN, name="r"))
HANDS_ON = child(simple("c"), outputParameters={"workspace": GIVEN})


def chained(*tasks: Json, **more: Any) -> list[str]:
    definition = flow(*tasks, **more)
    refuse_parallel_writers(definition, WRITERS, "flow.json")
    return refuse_unchained_writers(definition, WRITERS, READERS, "flow.json")


def refused(*tasks: Json, **more: Any) -> WorkflowDefinitionError:
    with pytest.raises(WorkflowDefinitionError) as caught:
        chained(*tasks, **more)
    return caught.value


def both(left: Json, right: Json) -> list[Json]:
    names = [left["taskReferenceName"], right["taskReferenceName"]]
    return [fork("f", [left], [right]), join("j", *names)]


# --- side by side -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right", "one", "other"),
    [
        (sub("s", WRITES, workspace=GIVEN), writer("x", GIVEN), "s/c", "x"),
        (sub("s", WRITES, workspace=GIVEN), sub("u", WRITES, workspace=GIVEN), "s/c", "u/c"),
        (
            sub("s", child(sub("c", WRITES, workspace=GIVEN)), workspace=GIVEN),
            writer("x", GIVEN),
            "s/c/c",
            "x",
        ),
        (
            sub(
                "s", child(loop("l", "false", writer("c", "${workflow.input.there}"))), there=GIVEN
            ),
            writer("x", GIVEN),
            "s/c",
            "x",
        ),
    ],
)
def test_w9_writers_inside_of_calls_that_run_side_by_side(
    left: Json, right: Json, one: str, other: str
) -> None:
    error = refused(*both(left, right))
    assert f"tasks {one!r} and {other!r} may run at the same time" in error.message


def test_w9_two_branches_inside_of_a_call() -> None:
    inner = child(*both(writer("a", GIVEN), writer("c", GIVEN)))
    assert "tasks 's/a' and 's/c' may run" in refused(sub("s", inner, workspace=GIVEN)).message


def test_w9_one_that_only_reads_or_writes_elsewhere_is_no_clash() -> None:
    elsewhere = {"repository": "r", "branch": "other", "ref": "c"}
    here = {"repository": "r", "branch": "main", "ref": "c"}
    for right in (sub("u", READS, workspace=here), sub("u", WRITES, workspace=elsewhere)):
        assert chained(*both(sub("s", WRITES, workspace=here), right)) == []
    same = sub("u", WRITES, workspace={**here})
    assert "branch 'main' of repository 'r'" in refused(*both(writer("x", here), same)).message


def test_w9_what_is_behind_the_join_is_not_beside_the_call() -> None:
    tasks = both(sub("s", WRITES, workspace=GIVEN), simple("b"))
    assert chained(*tasks, writer("z", "${s.output.workspace}")) == []
    assert chained(*tasks, writer("z", "${j.output.s.workspace}")) == []


def test_a_step_that_is_called_like_a_task_that_writes_is_none() -> None:
    call = {**sub("s", READS, workspace=GIVEN), "name": "w"}
    assert chained(*both(call, writer("x", GIVEN))) == []


# --- one after the other ----------------------------------------------------------------------


def test_w9a_a_call_behind_a_writer_is_given_what_that_wrote() -> None:
    written = "${a.output.workspace}"
    first = writer("a", GIVEN)
    assert chained(first, sub("s", WRITES, workspace=written)) == []
    error = refused(first, sub("s", WRITES, workspace=GIVEN))
    assert "task 's/c' writes branch" in error.message
    assert "after 'a' did" in error.message
    assert "inputParameters of the step that calls it" in str(error.remedy)


def test_w9a_a_writer_behind_a_call_reads_what_came_out_of_it() -> None:
    call = sub("s", WRITES, workspace=GIVEN)
    assert chained(call, writer("z", "${s.output.workspace}")) == []
    assert "after 's/c' did" in refused(call, writer("z", GIVEN)).message


def test_w9a_without_output_parameters_the_last_step_is_what_comes_out() -> None:
    call = sub("s", child(simple("a"), writer("c", GIVEN), outputParameters={}), workspace=GIVEN)
    assert chained(call, writer("z", "${s.output.workspace}")) == []


def test_w9a_a_workspace_goes_through_calls_that_hand_it_on() -> None:
    tasks = [
        writer("a", GIVEN),
        sub("s", HANDS_ON, workspace="${a.output.workspace}"),
        sub("u", child(sub("c", HANDS_ON, workspace=GIVEN)), workspace="${s.output.workspace}"),
        writer("z", "${u.output.workspace}"),
    ]
    assert chained(*tasks) == []


def test_w9a_inside_of_a_call_writers_follow_each_other_too() -> None:
    inner = child(writer("a", GIVEN), writer("c", GIVEN))
    assert "task 's/c' writes" in refused(sub("s", inner, workspace=GIVEN)).message


def test_w9a_a_terminate_inside_ends_only_the_workflow_inside() -> None:
    stop = system("TERMINATE", "e", terminationStatus="COMPLETED")
    inner = child(switch("x", 1, k=[writer("c", GIVEN), stop]), writer("d", GIVEN))
    call = sub("s", inner, workspace=GIVEN)
    assert chained(call) == []  # one of the two writers, never both
    error = refused(call, writer("z", GIVEN))
    assert "after 's/c' did" in error.message or "after 's/d' did" in error.message


def test_w9a_what_a_terminate_gives_cannot_be_told() -> None:
    stop = system("TERMINATE", "e", terminationStatus="COMPLETED")
    call = sub("s", child(writer("c", GIVEN), stop), workspace=GIVEN)
    (told,) = chained(call, writer("z", "${s.output.workspace}"))
    assert "it cannot be told whether task 'z' reads what 's/c' wrote" in told


def test_w9a_a_variable_inside_is_not_that_of_the_workflow_outside() -> None:
    inner = child(
        system("SET_VARIABLE", "v", place=GIVEN), writer("c", "${workflow.variables.place}")
    )
    (told,) = chained(
        writer("a", GIVEN),
        sub("s", inner, workspace="${a.output.workspace}"),
        variables={"place": 1},
    )
    assert "whether task 's/c' reads what 'a' wrote" in told


def test_a_call_in_a_loop_needs_a_variable_as_a_step_does() -> None:
    body = sub("s", WRITES, workspace=GIVEN)
    assert "task 's/c' writes" in refused(loop("l", "true", body)).message


# --- what is not known ------------------------------------------------------------------------


def test_a_workflow_that_is_not_here_cannot_be_told() -> None:
    call = {**system("SUB_WORKFLOW", "s"), "subWorkflowParam": {"name": "elsewhere"}}
    inner = child(call)
    assert chained(call, sub("u", inner)) == [
        "flow.json: it cannot be told which branches the workflow writes that step 's' calls",
        "flow.json: it cannot be told which branches the workflow writes that step 'u/s' calls",
    ]
