"""The reference pages say all there is to say, and nothing that is not so."""

from __future__ import annotations

import inspect
import json
import re
import runpy
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import perago
from perago import errors, testing
from perago.cli import exits
from perago.cli.app import app
from perago.notebook import RunResult
from perago.process.killing import LOG, VARIABLE
from perago.protocol.audit import confirm_metadata, staged_metadata
from perago.protocol.budget import Budget
from perago.protocol.event_format import KINDS
from perago.protocol.events import Moved
from perago.protocol.fence import assert_current_attempt_snapshot
from perago.protocol.lineage import WorkspacePublicationPlan
from perago.protocol.values import (
    Attempt,
    AttemptSnapshot,
    Claim,
    StagedWorkspace,
    Staging,
    WorkspaceInput,
)
from perago.tasks import spec
from perago.tasks.declaration import task
from perago.workflow import kinds, scope
from perago.workflow.controls import Controls
from perago.workflow.tasks import TaskKind
from tests.docs.conftest import Run
from tests.docs.pages import ROOT, blocks, every_page, names_in, rows, sections, text_of

CLI = "docs/reference/cli.md"


def _commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in vars(group)["commands"].items():
        if "commands" in vars(command):
            yield from _commands(command, f"{before}{name} ")
        else:
            yield before + name, command


COMMANDS = dict(_commands(get_command(app)))
VARIABLE_NAME = re.compile(r"\b(?:PERAGO|LAKECTL|CONDUCTOR)_[A-Z][A-Z_]+[A-Z]\b")


# --- commands -----------------------------------------------------------------------------------


def test_every_command_is_documented_and_exists() -> None:
    assert {heading.removeprefix("perago ") for heading in sections(CLI)} == set(COMMANDS)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_argument_and_option_is_documented_and_exists(command: str) -> None:
    table = rows(sections(CLI)[f"perago {command}"])
    documented = {
        part.split()[0] for first, *_ in table for part in names_in(first) if part != "..."
    }
    declared = set()
    for parameter in COMMANDS[command].params:
        if parameter.param_type_name == "argument":
            declared.add((parameter.metavar or parameter.name.upper()).split()[0])
        else:
            declared.update(parameter.opts)
    assert documented == declared


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_defaults_of_options_are_documented(command: str) -> None:
    table = {cells[0]: cells[1] for cells in rows(sections(CLI)[f"perago {command}"])}
    for parameter in COMMANDS[command].params:
        if parameter.default in (None, False, "") or callable(parameter.default):
            continue
        first = parameter.opts[0]
        shown = next(text for name, text in table.items() if first.lower() in name.lower())
        assert f"`{parameter.default}`" in shown, first


def test_options_of_the_program_itself_are_documented() -> None:
    options = {name for parameter in get_command(app).params for name in parameter.opts}
    assert all(f"{name}`" in text_of(CLI) for name in options)


@pytest.mark.parametrize("page", every_page())
def test_commands_on_every_page_exist(page: str) -> None:
    shown = "\n".join(blocks(page, "console") + blocks(page, "sh") + blocks(page, "text"))
    lines = re.findall(r"^(?:\$ )?(?:\w+=\S+ |\w+=\"[^\"]*\" )?perago (.+)$", shown, re.MULTILINE)
    for line in lines:
        words = shlex.split(line, comments=True)
        found = [name for name in (words[0], " ".join(words[:2])) if name in COMMANDS]
        assert found, line
        known = {name for parameter in COMMANDS[found[0]].params for name in parameter.opts}
        used = {word.partition("=")[0] for word in words[1:] if re.match(r"--?[a-z]", word)}
        assert used <= known, line


def test_what_check_shows_of_the_configuration_is_documented(tmp_path: Path, run: Run) -> None:
    run("perago", "init", "--json")
    configuration = json.loads(run("perago", "check", "tasks", "--json"))["configuration"]
    section = sections(CLI)["perago check"]
    shown = re.findall(r"^  (\w+(?: \w+)*?)  +\S", section, re.MULTILINE)
    assert shown == list(configuration)
    assert all(f'"{name}"' in section for name in configuration)


def test_dashes_of_options_stay_dashes() -> None:
    conf = runpy.run_path(str(ROOT / "docs/conf.py"))
    assert set(conf["smartquotes_action"]).isdisjoint("dDi")


# --- exit codes, variables ----------------------------------------------------------------------


def test_exit_codes_are_those_of_the_program() -> None:
    documented = {int(cells[0]) for cells in rows(text_of("docs/reference/exit-codes.md"))[1:]}
    declared = {value for name, value in vars(exits).items() if name.isupper() and name[0] != "_"}
    assert documented == declared


def test_every_variable_is_documented_and_read() -> None:
    files = ["settings.py", "dev/cache.py", "dev/recipes.py"]
    source = "".join((ROOT / "src/perago" / file).read_text() for file in files)
    documented = set(VARIABLE_NAME.findall(text_of("docs/reference/environment.md")))
    assert documented == set(VARIABLE_NAME.findall(source)) | {VARIABLE, LOG}


@pytest.mark.parametrize("page", every_page())
def test_variables_on_every_page_are_documented(page: str) -> None:
    pages = ("docs/reference/environment.md", "docs/reference/manifest.md")
    known = {name for each in pages for name in VARIABLE_NAME.findall(text_of(each))}
    assert set(VARIABLE_NAME.findall(text_of(page))) <= known


def test_every_variable_of_a_program_is_documented() -> None:
    files = (ROOT / "src/perago/programs").glob("*.py")
    given = {name for file in files for name in VARIABLE_NAME.findall(file.read_text())}
    assert set(VARIABLE_NAME.findall(text_of("docs/reference/manifest.md"))) == given


def test_defaults_of_variables_are_those_of_the_settings() -> None:
    source = (ROOT / "src/perago/settings.py").read_text()
    fixed = dict(re.findall(r'parsed\(\s*"(PERAGO_\w+)", "(\w+)"', source))
    table = {cells[0]: cells[1] for cells in rows(text_of("docs/reference/environment.md"))}
    assert fixed
    assert {name: table[f"`{name}`"] for name in fixed} == {
        name: f"`{value}`" for name, value in fixed.items()
    }


# --- errors, events, rules ----------------------------------------------------------------------


def _error_classes() -> dict[str, type[errors.PeragoError]]:
    return {
        name: kind
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and issubclass(kind, errors.PeragoError)
    }


def test_every_error_is_documented_with_its_status() -> None:
    documented = {
        cells[0].strip("`"): cells[2]
        for cells in rows(text_of("docs/reference/errors.md"))
        if cells[0] != "error"
    }
    classes = _error_classes()
    assert documented.keys() | {"PeragoError"} == classes.keys()
    for name, status in documented.items():
        assert (status == "`FAILED_WITH_TERMINAL_ERROR`") == classes[name].terminal, name


def test_exit_codes_of_errors_are_those_of_the_program() -> None:
    page = sections("docs/reference/errors.md")
    for title in ("Mistakes in what people write", "The workspace on this machine"):
        for name, _, _, code, _ in rows(page[title])[1:]:
            if code != "-":
                kind = _error_classes()[name.strip("`")]
                assert exits.exit_code(kind("")) == int(code), name
    for name, *_ in rows(page["Stores and brokers"])[1:]:
        assert exits.exit_code(_error_classes()[name.strip("`")]("")) == exits.UNREACHABLE


def test_every_point_is_documented_in_order() -> None:
    table = rows(sections("docs/reference/events.md")["Points, in order"])[1:]
    assert tuple(cells[0].strip("`") for cells in table) == testing.POINTS


def test_every_other_event_is_documented() -> None:
    table = rows(sections("docs/reference/events.md")["Others"])[1:]
    others = set(KINDS) - set(testing.POINTS) - {Moved.NAME}
    assert {cells[0].strip("`") for cells in table} == others


def test_every_fact_of_an_event_is_documented() -> None:
    found = sections("docs/reference/events.md")
    for cells in rows(found["Points, in order"])[1:] + rows(found["Others"])[1:]:
        kind = KINDS.get(cells[0].strip("`"))
        if kind is not None:
            named = re.findall("`([a-z_]+)`", cells[1].partition(";")[2])
            assert sorted(named) == sorted(field.name for field in fields(kind)), kind


@pytest.mark.parametrize("page", every_page())
def test_rules_that_a_page_cites_exist(page: str) -> None:
    known = set(re.findall(r"\*\*([A-Z]\d+)\*\*", text_of("docs/reference/rules.md")))
    cited = re.findall(r"\(((?:[GTIDSFPNKRWX]\d+(?:, )?)+)[):]", text_of(page))
    assert {rule for group in cited for rule in group.split(", ")} <= known


def test_the_fields_of_the_attempt_fence_are_those_of_the_rule() -> None:
    rule = re.search(r"\*\*F1\*\*(.*?)\n- ", text_of("docs/reference/rules.md"), re.DOTALL)
    assert rule
    same = AttemptSnapshot("workflow", "task", 1, "IN_PROGRESS", 5)
    others = {
        "workflow_instance_id": "other",
        "task_id": "other",
        "retry_count": 2,
        "status": "TIMED_OUT",
        "started_at": 6,
    }
    assert names_in(rule[1]) - {"StaleAttemptError"} == set(others)
    assert set(others) == set(AttemptSnapshot.__dataclass_fields__)
    assert_current_attempt_snapshot(same, same)
    for name, value in others.items():
        fresh: Any = {**asdict(same), name: value}
        with pytest.raises(errors.StaleAttemptError, match=name):
            assert_current_attempt_snapshot(same, AttemptSnapshot(**fresh))


def test_what_a_merge_says_more_than_a_replacement_is_documented() -> None:
    section = sections("docs/howto/look-at-history.md")["What the metadata says"]
    claim = Claim(Attempt("workflow", "task", 0, "step", "name"), {}, "execution")
    read = WorkspaceInput("repo", "main", "commit", "A")
    said = staged_metadata(claim, read, "/", Staging("repo", "staging"))
    plan = WorkspacePublicationPlan("main", "A", "A", "", "key")
    more = confirm_metadata(said, StagedWorkspace("repo", "staging", "C"), plan)
    assert {said["perago.phase"], more["perago.phase"]} <= names_in(section)
    for name in more.keys() - said.keys() - {"perago.staging_commit"}:
        assert name in names_in(section)


# --- the task API -------------------------------------------------------------------------------


def test_every_public_name_is_documented() -> None:
    page = text_of("docs/reference/task-api.md")
    assert [name for name in perago.__all__ if not re.search(rf"\b{name}\b", page)] == []


def test_arguments_of_task_are_documented() -> None:
    table = rows(sections("docs/reference/task-api.md")["task"])[1:]
    assert [cells[0].strip("`") for cells in table] == list(inspect.signature(task).parameters)


def test_arguments_of_run_and_attributes_of_its_result_are_documented() -> None:
    page = sections("docs/reference/python.md")
    arguments = [cells[0].strip("`") for cells in rows(page["perago.run"])[1:-1]]
    declared = list(inspect.signature(perago.run).parameters)
    assert arguments == declared[:-1]
    documented = {name for cells in rows(page["The result"])[1:] for name in names_in(cells[0])}
    public = {name for name in dir(RunResult) if not name.startswith("_")}
    fields = {name for name in RunResult.__dataclass_fields__ if not name.startswith("_")}
    assert {name.partition("(")[0] for name in documented} == public | fields


@pytest.mark.parametrize(
    "kind",
    [
        spec.WorkspaceSpec,
        spec.TaskControls,
        spec.RetryPolicy,
        spec.TimeoutPolicy,
        spec.ExecutionLimits,
        spec.MetricSpec,
        spec.SparkSpec,
    ],
)
def test_fields_and_defaults_are_documented(kind: type[spec.Declaration]) -> None:
    table = rows(sections("docs/reference/task-api.md")[kind.__name__])[1:]
    documented = {cells[0].strip("`"): cells[1].strip("`") for cells in table}
    assert documented == {
        name: f"{type(field.default).__name__}()"
        if isinstance(field.default, spec.Declaration)
        else repr(field.default).replace("'", '"')
        for name, field in kind.model_fields.items()
    }


def test_the_budget_without_a_budget_is_documented() -> None:
    table = rows(sections("docs/reference/task-api.md")["PublishBudget"])[1:]
    assert list(spec.PublishBudget.model_fields) == [cells[0].strip("`") for cells in table]
    for name, _, default, _ in table:
        assert getattr(Budget(), name.strip("`")) == float(default.strip("`"))


# --- workflow files -----------------------------------------------------------------------------

WORKFLOW = "docs/reference/workflow.md"


def test_fields_of_a_workflow_are_documented() -> None:
    section = sections(WORKFLOW)["Workflow"]
    said = vars(kinds)
    assert {cells[0].strip("`") for cells in rows(section)[1:]} == said["_USED_BY_WORKFLOW"]
    assert names_in(_paragraph(section, "Ignored")) == said["_HARMLESS_ON_WORKFLOW"]
    assert names_in(_paragraph(section, "Refused")) == said["_REFUSED_ON_WORKFLOW"]


def test_fields_of_steps_are_documented() -> None:
    said = vars(kinds)
    section = sections(WORKFLOW)["Steps"]
    refused = names_in(_paragraph(section, "Refused on every step").partition(". ")[0])
    assert refused == said["_REFUSED_ON_TASK"]
    assert names_in(_paragraph(section, "Ignored on every step")) == said["_HARMLESS_ON_TASK"]
    for kind in TaskKind:
        table = rows(sections(WORKFLOW, "### ")[kind].partition("\n## ")[0])[1:]
        assert {cells[0].strip("`") for cells in table} == said["_USED"][kind] - said["_COMMON"]


def test_controls_of_a_task_are_documented() -> None:
    table = rows(sections(WORKFLOW)["Controls of a task"])[1:]
    documented = {cells[0].strip("`"): cells[1].strip("`") for cells in table}
    asked: dict[str, object] = {}

    class Asked(dict[str, object]):
        def get(self, key: str, default: object = None) -> object:
            asked[key] = None
            return default

    default = Controls.from_taskdef(Asked())
    assert documented.keys() == asked.keys()
    numbers = {key: int(text) for key, text in documented.items() if text.isdecimal()}
    assert Controls.from_taskdef(numbers) == default
    assert documented["retryLogic"] == default.retry_logic
    assert documented["timeoutPolicy"] == default.timeout_policy


def test_what_expressions_know_is_documented() -> None:
    section = sections(WORKFLOW)["Expressions"]
    for start, known in (
        ("`${workflow.…}` knows", scope.WORKFLOW_FIELDS),
        ("`${<step>.…}` knows", scope.TASK_FIELDS),
    ):
        assert names_in(_paragraph(section, start).removeprefix(start)) == known


def _paragraph(text: str, start: str) -> str:
    return next(part for part in text.split("\n\n") if part.strip().startswith(start)).strip()


# --- installing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md"])
def test_every_extra_is_in_the_readme_and_exists(page: str) -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    title = "Install" if page == "README.md" else "安装"
    first = [cells[0] for cells in rows(sections(page)[title])[1:]]
    assert {name for cell in first for name in names_in(cell)} == {
        *declared["optional-dependencies"]
    }
