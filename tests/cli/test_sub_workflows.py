"""Sub workflows at the command line: found, shown, resumed, cancelled; people inside of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perago.cli.workflow_files import WorkflowFiles, complete
from perago.errors import UsageError, WorkflowDefinitionError
from tests.broker.definitions import Json, flow, simple, system
from tests.cli.conftest import Perago

TASKS = """
from pathlib import Path
from pydantic import BaseModel
from perago import TaskFailed, WorkspaceSpec, task

class Params(BaseModel):
    text: str = "x"

class Result(BaseModel):
    lines: int

@task(name="put", owner_email="a@example.com", workspace=WorkspaceSpec())
def put(workspace: Path, params: Params) -> Result:
    log = workspace / "log.txt"
    if params.text == "fails" and not Path("mended").exists():
        raise TaskFailed("not yet")
    with log.open("a") as file:
        file.write(params.text + "\\n")
    return Result(lines=len(log.read_text().splitlines()))
"""


def put(ref: str, workspace: str, text: str) -> Json:
    given = {"workspace": f"${{{workspace}.workspace}}", "params": {"text": text}}
    return simple(ref, "put", inputParameters=given, retryCount=0)


def calls(ref: str, name: str, version: int | None = None, **given: Any) -> Json:
    param = {"name": name} | ({} if version is None else {"version": version})
    return {**system("SUB_WORKFLOW", ref, **given), "subWorkflowParam": param}


CHILD = flow(
    put("one", "workflow.input", "one"),
    put("two", "one.output", "${workflow.input.text}"),
    name="child",
    inputParameters=["workspace", "text"],
    outputParameters={"workspace": "${two.output.workspace}", "n": "${two.output.result.lines}"},
)
PARENT = flow(
    calls(
        "ingest", "child", workspace="${workflow.input.workspace}", text="${workflow.input.text}"
    ),
    put("last", "ingest.output", "last"),
    name="parent",
    inputParameters=["workspace", "text"],
    outputParameters={"n": "${last.output.result.lines}"},
)


def write(project: Path, **files: Json) -> None:
    (project / "tasks.py").write_text(TASKS)
    for name, definition in files.items():
        (project / f"{name}.json").write_text(json.dumps(definition))


def test_a_run_with_a_sub_workflow_fails_is_shown_and_goes_on_inside(
    project: Path, perago: Perago
) -> None:
    write(project, parent=PARENT, beside=CHILD)
    failed = perago("run", "parent.json", "tasks", "-r", "demo", "-i", "text=fails")
    assert failed.code == 1, failed
    assert "✓ ingest/one  published" in failed.out
    assert "✗ ingest/two" in failed.out
    (run,) = perago("runs", "--json").json
    child, parent = perago("runs", "--all", "--json").json
    assert (parent["run"], child["parent"]) == (run["run"], run["run"])

    (project / "mended").touch()
    resumed = perago("run", "--resume", child["run"], "--json")
    assert (resumed.code, resumed.json["run"]) == (0, run["run"])
    assert resumed.json["output"] == {"n": 3}

    seen = perago("watch", "last", "--json").json
    work = [step for step in seen["steps"] if step["step"] != "ingest"]
    assert [(step["step"], step["status"]) for step in work] == [
        ("ingest/one", "COMPLETED"),
        ("ingest/two", "FAILED"),
        ("ingest/two", "COMPLETED"),
        ("last", "COMPLETED"),
    ]
    inside = perago("inspect", run["run"]).out
    assert inside.index("one (put)") < inside.index("two (put)") < inside.index("last (put)")


def test_what_is_called_is_drawn_and_its_writers_are_checked(project: Path, perago: Perago) -> None:
    stale = {**PARENT, "tasks": [PARENT["tasks"][0], put("last", "workflow.input", "last")]}
    write(project, parent=PARENT, child=CHILD, stale=stale)
    assert "two  put  publishes" in perago("graph", "parent.json", "tasks").out
    assert perago("check", "tasks", "parent.json").code == 0
    refused = perago("check", "tasks", "stale.json")
    assert refused.code == 2
    assert "task 'last' writes branch" in refused.err
    assert "after 'ingest/two' did" in refused.err


def test_a_person_inside_of_a_sub_workflow_does_the_step_and_the_run_goes_on(
    project: Path, perago: Perago
) -> None:
    (project / "people.toml").write_text(
        '[[task]]\nname = "title"\nowner_email = "a@example.com"\nhuman = true\n'
    )
    asks = {**simple("ask", "title", inputParameters={"params": {}}), "type": "HUMAN"}
    write(project, child=flow(asks, name="child"), parent=flow(calls("inner", "child"), name="p"))
    begun = perago("run", "parent.json", "people.toml", "--json")
    assert begun.code == 5, begun
    assert [step["step"] for step in begun.json["waiting"]] == ["ask"]
    assert [run["status"] for run in perago("runs", "--json").json] == ["WAITING"]
    done = perago("human", "submit", "ask", "--json")
    assert (done.code, done.json["run"]["id"]) == (0, begun.json["run"])


def test_a_cancelled_run_takes_its_children_with_it(project: Path, perago: Perago) -> None:
    asks = {**simple("ask", "title", inputParameters={"params": {}}), "type": "HUMAN"}
    (project / "people.toml").write_text(
        '[[task]]\nname = "title"\nowner_email = "a@example.com"\nhuman = true\n'
    )
    write(project, child=flow(asks, name="child"), parent=flow(calls("inner", "child"), name="p"))
    assert perago("run", "parent.json", "people.toml").code == 5
    assert perago("cancel", "last").code == 0
    runs = perago("runs", "--all", "--json").json
    assert {run["status"] for run in runs} == {"TERMINATED"}
    assert perago("human", "list", "--json").json == []


# --- where definitions are looked for ---------------------------------------------------------


def test_what_was_named_goes_before_what_lies_beside(tmp_path: Path) -> None:
    write(tmp_path, parent=PARENT, old=CHILD, new={**CHILD, "version": 2})
    (tmp_path / "package.json").write_text('{"name": "child", "version": "9"}')
    (tmp_path / "broken.json").write_text("{")
    parent = str(tmp_path / "parent.json")

    def called(version: int | None, **named: Json) -> Any:
        definition = flow(calls("s", "child", version), name="parent")
        filled = complete(definition, parent, named)
        return filled["tasks"][0]["subWorkflowParam"]["workflowDefinition"].get("version")

    assert called(None) == 2
    assert called(1) == 1
    assert called(None, **{"elsewhere/child.json": CHILD}) == 1
    with pytest.raises(WorkflowDefinitionError, match="version 3, which is not here"):
        called(3)


def test_two_files_that_are_one_workflow_are_refused_only_if_they_differ(tmp_path: Path) -> None:
    write(tmp_path, one=CHILD, two=CHILD)
    assert WorkflowFiles({}, tmp_path).find("child", None) == CHILD
    write(tmp_path, two={**CHILD, "description": "another"})
    with pytest.raises(UsageError, match="are both workflow 'child' version 1"):
        WorkflowFiles({}, tmp_path).find("child", None)


def test_a_workflow_that_is_built_in_python_has_no_files_beside_it() -> None:
    with pytest.raises(WorkflowDefinitionError, match="which is not here"):
        complete(PARENT, "module:workflow", {})
    filled = complete(PARENT, "module:workflow", {"child.json": CHILD})
    assert filled["tasks"][0]["subWorkflowParam"]["workflowDefinition"] == CHILD
