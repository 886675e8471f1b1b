"""A misspelt name is refused before the first step, and the right one suggested."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Perago

RUN = ("run", "workflow.json", "tasks", "--from", "data")
CHECK = ("check", "tasks", "workflow.json")
REGISTER = ("register", "tasks", "workflow.json")


@pytest.fixture(autouse=True)
def _made(inside: Perago) -> None:
    assert inside("init", ".").code == 0


def edit(project: Path, change: Any) -> None:
    file = project / "workflow.json"
    workflow = json.loads(file.read_text())
    change(workflow)
    file.write_text(json.dumps(workflow))


def refused(inside: Perago, project: Path, *commands: tuple[str, ...]) -> list[str]:
    said = []
    for command in commands:
        answer = inside(*command)
        assert (answer.code, answer.out) == (2, ""), answer
        assert answer.err.count("\n") == 1
        said.append(answer.err)
    assert not (project / ".perago").exists(), "nothing is made before the names are checked"
    return said


def test_an_input_that_the_workflow_does_not_have(inside: Perago, project: Path) -> None:
    (text,) = refused(inside, project, (*RUN, "-i", "topp=3"))
    assert "workflow.json has no input 'topp'; did you mean 'top'?" in text


def test_an_expression_that_reads_undeclared_input(inside: Perago, project: Path) -> None:
    def change(workflow: Any) -> None:
        workflow["tasks"][1]["inputParameters"]["params"] = {"top": "${workflow.input.topp}"}

    edit(project, change)
    for text in refused(inside, project, RUN, CHECK, REGISTER):
        assert "step 'top': ${workflow.input.topp} reads input" in text
        assert "did you mean 'top'?" in text


def test_a_step_without_its_params(inside: Perago, project: Path) -> None:
    def change(workflow: Any) -> None:
        inputs = workflow["tasks"][0]["inputParameters"]
        inputs["parms"] = inputs.pop("params")

    edit(project, change)
    for text in refused(inside, project, RUN, CHECK, REGISTER):
        assert "step 'count': inputParameters has the unknown key 'parms'" in text
        assert "did you mean 'params'?" in text


def test_params_that_a_strict_task_does_not_have(inside: Perago, project: Path) -> None:
    tasks = project / "tasks.py"
    tasks.write_text(
        tasks.read_text().replace(
            "class TopParams(BaseModel):", 'class TopParams(BaseModel, extra="forbid"):'
        )
    )
    (text,) = refused(inside, project, ("run", "tasks:top_words", "--params", '{"topp": 1}'))
    assert "params of task 'top_words' have no field 'topp'; did you mean 'top'?" in text


def test_params_that_a_task_ignores_are_warned_of_twice(perago: Perago, project: Path) -> None:
    def change(workflow: Any) -> None:
        workflow["tasks"][0]["inputParameters"]["params"] = {"min_lenght": 2}

    edit(project, change)
    warning = (
        "warning: workflow.json: step 'count': params of task 'count_words' have no field "
        "'min_lenght', it is ignored; did you mean 'min_length'?\n"
    )
    ran = perago(*RUN)
    assert ran.code == 0, ran
    assert ran.err == 2 * warning
    assert warning in perago(*CHECK).err
    (text,) = perago(*RUN, "--json").json["warnings"]
    assert f"warning: {text}\n" == warning


def test_variables_that_are_read_too_early_are_warned_of_before_the_first_step(
    inside: Perago, project: Path
) -> None:
    sets: dict[str, Any] = {"name": "set", "taskReferenceName": "set", "type": "SET_VARIABLE"}
    sets["inputParameters"] = {"top": 3}

    def change(workflow: Any) -> None:
        workflow["tasks"][1]["inputParameters"]["params"] = {"top": "${workflow.variables.top}"}
        workflow["tasks"].append(sets)

    edit(project, change)
    expected = "step 'top': ${workflow.variables.top} is null: 'top' is set by 'set', which does"
    checked = inside(*CHECK)
    assert (checked.code, expected in checked.err) == (0, True)
    ran = inside(*RUN, "--json")
    assert [expected in text for text in ran.json["warnings"]] == [True]


def test_a_variable_that_nothing_sets_is_told_with_the_nearest(
    inside: Perago, project: Path
) -> None:
    def change(workflow: Any) -> None:
        workflow["tasks"][1]["inputParameters"]["params"] = {"top": "${workflow.variables.topp}"}
        workflow["variables"] = {"top": 3}

    edit(project, change)
    (text,) = refused(inside, project, RUN)
    assert "did you mean 'top'?" in text
    assert "'perago run' does not; did you mean 'top'?" in inside(*CHECK).err
