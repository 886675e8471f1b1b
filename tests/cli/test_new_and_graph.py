"""``perago new workflow`` and ``perago graph``, as a person types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Perago

TASKS = """
from datetime import date
from pathlib import Path

from pydantic import BaseModel, Field

from perago import WorkspaceSpec, task


class Load(BaseModel):
    currency: str
    top: int = 5
    day: date = Field(default_factory=date.today)
    odd: int = None
    since: date = date(2026, 1, 2)


class Report(BaseModel):
    top: int = 3
    rate: float = Field(default=1.5, alias="Rate of [exchange]")


class Nothing(BaseModel):
    pass


OWNER = "data@example.com"


@task(name="load it", owner_email=OWNER, workspace=WorkspaceSpec())
def load(workspace: Path, params: Load) -> Nothing:
    (workspace / "out.txt").write_text(f"{params.currency} {params.top} {params.since}")
    return Nothing()


@task(name="report", owner_email=OWNER, workspace=WorkspaceSpec())
def report(workspace: Path, params: Report) -> Nothing:
    (workspace / "report.txt").write_text((workspace / "out.txt").read_text() + f" {params.rate}")
    return Nothing()


@task(name="look", owner_email=OWNER, workspace=WorkspaceSpec(read_only=True))
def look(workspace: Path, params: Nothing) -> Report:
    return Report()
"""


@pytest.fixture
def tasks(project: Path) -> Path:
    """Write a module with three tasks."""
    (project / "shop.py").write_text(TASKS)
    return project / "shop.py"


def test_a_new_workflow_is_checked_drawn_and_run_as_it_is(
    project: Path, perago: Perago, tasks: Path
) -> None:
    made = perago("new", "workflow", "shop", "-o", "flow.json")
    assert made.code == 0, made
    assert "perago run flow.json shop -i currency=..." in made.out
    for key in ("day", "odd"):
        assert f"param '{key}' is left to the task" in made.err
    definition = json.loads((project / "flow.json").read_text())
    assert definition["name"] == "flow"
    assert definition["inputTemplate"] == {
        "load_it_top": 5,
        "since": "2026-01-02",
        "report_top": 3,
        "Rate_of_exchange": 1.5,
    }
    checked = perago("check", "shop", "flow.json", "--json")
    assert checked.json["warnings"] == []
    ran = perago("run", "flow.json", "shop", "-i", "currency=SEK", "--json")
    assert ran.code == 0, ran
    assert perago("checkout", "out").code == 0
    assert (project / "out" / "report.txt").read_text() == "SEK 5 2026-01-02 1.5"
    drawn = perago("graph", "flow.json", "shop")
    assert drawn.out.splitlines() == [
        "flow",
        "  load_it  load it  publishes  reads input",
        "  report   publishes  reads load_it",
        "  look     read-only  reads report",
    ]


def test_the_order_is_that_of_the_arguments(project: Path, inside: Perago, tasks: Path) -> None:
    order = ("shop:report", "shop:look", "shop:load")
    made = inside("new", "workflow", *order, "-o", "back.json", "--name", "zurück", "--json")
    assert made.json == {
        "written": "back.json",
        "tasks": ["report", "look", "load it"],
        "required": ["currency"],
    }
    definition = json.loads((project / "back.json").read_text())
    assert definition["name"] == "zurück"
    assert [task["inputParameters"]["workspace"] for task in definition["tasks"]] == [
        "${workflow.input.workspace}",
        "${report.output.workspace}",
        "${report.output.workspace}",
    ]


def test_nothing_is_overwritten_and_mistakes_are_one_sentence(
    project: Path, inside: Perago, tasks: Path
) -> None:
    (project / "workflow.json").write_text("mine")
    (project / "link.json").symlink_to("nowhere.json")
    for arguments, said in (
        (("shop",), "workflow.json exists already; choose another file"),
        (("shop", "-o", "link.json"), "link.json exists already"),
        (("shop", "-o", "flow.yaml"), "does not end in .json"),
        (("shop", "-o", "no/where.json"), "cannot be written"),
        (("shop", "-o", "a.json", "--name", " "), "is not a name"),
        (("shop", "-o", "a.json", "--name", "a\nb"), "is not a name"),
        (("shop:nobody", "-o", "a.json"), "has no task 'nobody'"),
        (("nowhere", "-o", "a.json"), "was not found"),
    ):
        answer = inside("new", "workflow", *arguments)
        assert answer.code == 2, answer
        assert said in answer.err
        assert len(answer.err.splitlines()) == 1
    assert (project / "workflow.json").read_text() == "mine"
    assert not (project / "a.json").exists()


def test_a_graph_is_written_in_the_form_of_its_name(
    project: Path, inside: Perago, tasks: Path
) -> None:
    assert inside("new", "workflow", "shop", "-o", "flow.json").code == 0
    for name, begins in (("a.svg", "<svg "), ("a.mmd", "flowchart TD"), ("a.txt", "flow\n")):
        assert inside("graph", "flow.json", "-o", name).code == 0
        assert (project / name).read_text().startswith(begins)
    assert inside("graph", "flow.json", "--format", "svg").out.startswith("<svg ")
    assert inside("graph", "flow.json", "--json").json["nodes"][1]["reads"] == "load_it"
    without = inside("graph", "flow.json")
    assert "publishes" not in without.out
    assert without.code == 0


def test_a_workflow_built_in_python_is_drawn(project: Path, inside: Perago, tasks: Path) -> None:
    assert inside("new", "workflow", "shop", "-o", "flow.json").code == 0
    (project / "flows.py").write_text(
        "import json, pathlib\nflow = json.loads(pathlib.Path('flow.json').read_text())\n"
    )
    assert inside("graph", "flows:flow").out.splitlines()[0] == "flow"


def test_what_cannot_be_drawn_is_one_sentence(project: Path, inside: Perago, tasks: Path) -> None:
    (project / "empty.json").write_text("{}")
    (project / "list.json").write_text("[]")
    (project / "bad.json").write_text("{")
    for target, said in (
        ("none.json", "does not exist"),
        ("empty.json", "name is missing"),
        ("list.json", "not a workflow"),
        ("bad.json", "line 1"),
        ("shop", "is not a workflow file"),
        ("shop:look", "not a workflow"),
    ):
        answer = inside("graph", target)
        assert answer.code == 2, answer
        assert said in answer.err
        assert len(answer.err.splitlines()) == 1


def test_names_of_others_are_never_read_as_markup(project: Path, inside: Perago) -> None:
    name = "[red]dir:fire:x\n"
    step = {"name": name, "taskReferenceName": name, "inputParameters": {"params": {}}}
    (project / "odd.json").write_text(json.dumps({"name": name, "tasks": [step]}))
    shown = inside("graph", "odd.json").out
    assert shown.splitlines() == ["[red]dir:fire:x\\n", "  [red]dir:fire:x\\n"]


def test_tasks_that_no_module_declares_are_named(
    project: Path, inside: Perago, tasks: Path
) -> None:
    assert inside("new", "workflow", "shop", "-o", "flow.json").code == 0
    answer = inside("graph", "flow.json", "shop:look")
    assert answer.code == 0
    assert "task 'load it' is in none of the modules" in answer.err
