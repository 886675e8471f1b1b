"""A workflow written from tasks: chained by the last writer, with their params as inputs."""

from __future__ import annotations

from typing import Any

from perago.brokers.local import parse_workflow
from perago.workflow.chain import refuse_unchained_writers
from perago.workflow.scaffold import Param, ScaffoldTask, scaffold

GIVEN = "${workflow.input.workspace}"


def made(*parts: ScaffoldTask) -> dict[str, Any]:
    return scaffold("flow", "data@example.com", parts).definition


def workspaces(definition: dict[str, Any]) -> list[str | None]:
    return [task["inputParameters"].get("workspace") for task in definition["tasks"]]


def params(definition: dict[str, Any]) -> list[dict[str, str]]:
    return [task["inputParameters"]["params"] for task in definition["tasks"]]


def test_each_step_reads_the_last_writer_before_it() -> None:
    definition = made(
        ScaffoldTask("look", "reads"),
        ScaffoldTask("load", "writes"),
        ScaffoldTask("ask", "none"),
        ScaffoldTask("check", "reads"),
        ScaffoldTask("report", "writes"),
        ScaffoldTask("tell", "reads"),
    )
    load, report = "${load.output.workspace}", "${report.output.workspace}"
    assert workspaces(definition) == [GIVEN, GIVEN, None, load, load, report]
    assert definition["outputParameters"]["workspace"] == report
    names = {"look", "load", "ask", "check", "report", "tell"}
    assert refuse_unchained_writers(definition, {"load", "report"}, {"look", "check"}, "f") == []
    assert parse_workflow(definition, names, "f").input_parameters == ("workspace",)


def test_params_become_inputs_with_their_defaults() -> None:
    found = scaffold(
        "flow",
        "data@example.com",
        [
            ScaffoldTask(
                "load", "writes", (Param("day", "date", True), Param("top", "int", False, 5))
            ),
            ScaffoldTask("report", "writes", (Param("day", "date", True),)),
        ],
    )
    assert found.definition["inputParameters"] == ["workspace", "day", "top"]
    assert found.definition["inputTemplate"] == {"top": 5}
    assert found.required == ("day",)
    day, top = "${workflow.input.day}", "${workflow.input.top}"
    assert params(found.definition) == [{"day": day, "top": top}, {"day": day}]


def test_params_of_one_name_that_are_declared_differently_get_inputs_of_their_own() -> None:
    definition = made(
        ScaffoldTask("a", "none", (Param("top", "int", False, 5), Param("workspace", "str", True))),
        ScaffoldTask(
            "b", "none", (Param("top", "int", False, 3), Param("b_top", "str", False, "x"))
        ),
    )
    assert params(definition) == [
        {"top": "${workflow.input.a_top}", "workspace": "${workflow.input.a_workspace}"},
        {"top": "${workflow.input.b_top_2}", "b_top": "${workflow.input.b_top}"},
    ]
    assert definition["inputTemplate"] == {"a_top": 5, "b_top_2": 3, "b_top": "x"}
    assert "workspace" not in definition["inputParameters"]


def test_odd_names_of_tasks_and_params_give_expressions_that_can_be_read() -> None:
    names = ["a b", "a.b", "workflow", "[red]", "***", "数 字", "workspace", "x" * 300, "${a}"]
    odd = [Param(f"{name}'\"}}", "s", True) for name in names]
    definition = made(*(ScaffoldTask(param.key[:-3], "writes", (param,)) for param in odd))
    references = [task["taskReferenceName"] for task in definition["tasks"]]
    assert references[:5] == ["a_b", "a_b_2", "workflow_2", "red", "step"]
    assert len({*references}) == len(names)
    assert [task["name"] for task in definition["tasks"]] == names
    parse_workflow(definition, set(names), "f")
    assert refuse_unchained_writers(definition, names, [], "f") == []
