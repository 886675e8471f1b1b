"""What others named is printed as it is called, on one line, whatever is in the name."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from perago.app.local import Home
from perago.cli import screen
from perago.cli.seed import read_input
from perago.cli.workflow_files import workflow_file
from perago.errors import PeragoError, RuntimeConfigError, UsageError
from perago.protocol.printable import printable
from perago.settings import load_settings
from tests.cli.conftest import Perago, written
from tests.test_architecture import MODULES, Module

HOSTILE = {
    "line": "a\n+ forged.txt",
    "return": "a\r- forged.txt",
    "escape": "\x1b[2K\x1b[1Aall as stored",
    "bidi": "evil\u202etxt.exe",
    "emoji": "dir:fire:x",
    "markup": "[red]x[/red]",
    "closing": "x[/]y",
    "separator": "a\u2028+ forged",
    "c1": "a\x9b31mred",
    "number": "one:two:0",
    "backslash": "dir\\",
    "backslashes": "dir\\\\\\",
    "escaped": "a\\[red]",
    "half a tag": "[bold",
    "link": "https://example.com/[link=x]",
}


@pytest.mark.parametrize("name", HOSTILE.values(), ids=list(HOSTILE))
def test_a_name_is_one_line_of_characters(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    screen.say(f"[green]+[/green] {screen.plain(name)}")
    screen.say(f"[bold]{screen.plain(name)}[/bold]{screen.plain(name)} {screen.plain('x]')}")
    screen.table(["name", "more"], [[screen.plain(name), 1]])
    screen.fields({"name": screen.plain(name)})
    screen.complain(UsageError(f"no {name}", remedy="give another"), as_json=False)
    lines = "".join(capsys.readouterr()).rstrip("\n").split("\n")
    assert len(lines) == (7 if name == HOSTILE["line"] else 6)
    assert all(line.isprintable() for line in lines)
    shown = name if name.isprintable() else printable(name)
    assert lines[0] == f"+ {shown}"
    assert lines[1] == f"{shown}{shown} x]"
    assert lines[3].split() == [*shown.split(), "1"]
    assert lines[4] == f"  name  {shown}"
    assert not any(line.startswith(("+ forged", "- forged")) for line in lines)


@pytest.mark.parametrize("name", HOSTILE.values(), ids=list(HOSTILE))
def test_json_means_the_same_and_acts_on_no_terminal(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    screen.emit({"name": name, "list": [name]})
    text = capsys.readouterr().out
    assert json.loads(text) == {"name": name, "list": [name]}
    assert all(line.isprintable() for line in text.split("\n"))


def test_keys_of_a_repository_forge_no_lines(perago: Perago, project: Path) -> None:
    """Only a store that was not filled by us holds such keys; they are listed all the same."""
    home = Home(project / ".perago", project / "rooms")
    before = home.store.create_repository("names", "main").id
    keys = [f"data/{name}" for name in HOSTILE.values() if "/" not in name]
    for key in keys:
        home.store.put("names", "main", key, b"x")
    home.store.commit_branch("names", "main", "a\nperago  forged by nobody")
    home.close()
    shown = perago("diff", before, "main")
    assert shown.code == 0, shown.err
    assert len(shown.out.splitlines()) == 1 + len(keys)
    assert all(line.startswith("+ data/") for line in shown.out.splitlines()[1:])
    assert "+ data/dir:fire:x" in shown.out.splitlines()
    listed = perago("log")
    assert listed.code == 0, listed.err
    assert not any(line.startswith("perago ") for line in listed.out.splitlines())
    assert set(perago("diff", before, "main", "--json").json["added"]) == set(keys)


@pytest.mark.parametrize(
    ("pairs", "params", "why"),
    [
        ([f"k={'9' * 5000}"], None, "more than 400 digits"),
        ([f"k={'[' * 100_000}"], None, "nested more than 200 deep"),
        ([], '{"a": 1e999}', "too large"),
        ([], '{"a":' * 50_000, "nested more than 200 deep"),
    ],
)
def test_input_that_is_too_deep_or_too_large_is_one_sentence(
    pairs: list[str], params: str | None, why: str
) -> None:
    with pytest.raises(UsageError, match=why) as told:
        read_input(pairs, None, params)
    assert len(str(told.value)) < 300


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"[" * 200_000, "nested more than 200 deep"), (b'{"a": "\xff"}', "cannot be read")],
)
def test_a_file_that_is_too_deep_or_no_text_is_one_sentence(
    tmp_path: Path, content: bytes, why: str
) -> None:
    file = tmp_path / "given.json"
    file.write_bytes(content)
    with pytest.raises(PeragoError, match=why):
        workflow_file(file)
    with pytest.raises(PeragoError, match=why):
        read_input([], file, None)


def test_a_number_that_is_too_large_is_one_sentence(perago: Perago, project: Path) -> None:
    (project / ".perago").mkdir()
    done = perago("runs", "--limit", "9" * 30)
    assert (done.code, done.out) == (2, "")
    assert "too large" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"PERAGO_HOME=\xff\xfe\n", "UTF-8"),
        (b"PERAGO_CACHE_MAX_SIZE=" + b"9" * 400 + b"TB\n", "smaller"),
        (b"PERAGO_POLL_INTERVAL=" + b"9" * 400 + b"d\n", "smaller"),
        (b"PERAGO_OUTPUT_MAX_SIZE=" + b"9" * 5000 + b"\n", "use a size"),
        (b"PERAGO_SPARK_FROM_OBJECTS=" + b"9" * 5000 + b"\n", "whole number"),
    ],
)
def test_a_broken_env_file_is_one_sentence(tmp_path: Path, text: bytes, why: str) -> None:
    (tmp_path / ".env").write_bytes(text)
    with pytest.raises(RuntimeConfigError, match=why) as told:
        load_settings({}, tmp_path)
    assert len(str(told.value)) < 500


# --- every command, with names that could be taken for something else ----------------------------

NAMES = {
    "workflow": "[red]flow:fire:[/red]",
    "task": "[bold]count\\",
    "step": "one[blue]",
    "file": "dir:fire:x/one:two:0/[green]a[/green].txt",
    "value": ":smile: [link=x]https://example.com[/link] 1",
}
TASKS = f"""
from pathlib import Path
from pydantic import BaseModel
from perago import RetryPolicy, TaskControls, TaskFailed, WorkspaceSpec, forbid_glob, task

class Params(BaseModel):
    text: str

class Result(BaseModel):
    text: str

@task(
    name={NAMES["task"]!r},
    owner_email="a@example.com",
    workspace=WorkspaceSpec(post=[forbid_glob("*.[tmp]")]),
    controls=TaskControls(retry=RetryPolicy(count=0)),
)
def count(workspace: Path, params: Params) -> Result:
    print(params.text)
    if params.text == "fail [red]x":
        raise ValueError(params.text)
    (workspace / {NAMES["file"]!r}).write_text(params.text)
    return Result(text=params.text)
"""
WORKFLOW = {
    "name": NAMES["workflow"],
    "version": 1,
    "tasks": [
        {
            "name": NAMES["task"],
            "taskReferenceName": NAMES["step"],
            "type": "SIMPLE",
            "inputParameters": {
                "workspace": "${workflow.input.workspace}",
                "params": {"text": "${workflow.input.text}"},
            },
        }
    ],
    "outputParameters": {"said [red]": "${workflow.input.text}"},
}


@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
def test_what_users_name_is_shown_as_they_named_it(
    project: Path, perago: Perago, on_terminal: Perago, terminal: bool
) -> None:
    (project / "tasks.py").write_text(TASKS)
    (project / "flow.json").write_text(json.dumps(WORKFLOW))
    file = project / "data" / NAMES["file"]
    file.parent.mkdir(parents=True)
    file.write_text("before")

    def shown(*arguments: str) -> str:
        if not terminal:
            answer = perago(*arguments)
            return answer.out + answer.err
        return written(on_terminal(*arguments, columns=200).out)

    ran = shown("run", "flow.json", "tasks", "--from", "data", "-i", f"text={NAMES['value']}")
    for text in (NAMES["workflow"], NAMES["step"], f"said [red]  {NAMES['value']}"):
        assert text in ran
    assert f"{NAMES['step']} | {NAMES['value']}" in ran
    failed = shown("run", "flow.json", "tasks", "-i", "text=fail [red]x")
    assert "ValueError: fail [red]x" in failed

    assert NAMES["workflow"] in shown("runs")
    assert NAMES["task"] in shown("check", "tasks", "flow.json")
    assert NAMES["task"] in shown("report")
    assert NAMES["step"] in shown("log")
    assert f"~ {NAMES['file']}" in shown("diff")
    inspected = shown("inspect", "main")
    for text in (NAMES["step"], f"({NAMES['task']})", f"~ {NAMES['file']}", "'*.[tmp]'"):
        assert text in inspected
    for arguments in (
        ("log", NAMES["value"]),
        ("log", "--branch", NAMES["value"]),
        ("inspect", NAMES["value"]),
        ("run", f"{NAMES['file']}.json", "tasks"),
        ("run", "--resume", NAMES["value"]),
    ):
        said = shown(*arguments)
        assert any(NAMES[kind] in said for kind in ("value", "file")), said


def test_only_one_module_makes_consoles() -> None:
    """Another one would read names for pictures, markup, numbers and links again."""
    makers = re.compile(r"\bConsole\(|\bTextColumn\(|\bfrom_markup\(|import print\b|rich\.print\b")
    found = {module.name for module in MODULES if makers.search(module.text)}
    assert found == {"perago.terminal", "perago.cli.screen"}
    text = next(module.text for module in MODULES if module.name == "perago.cli.screen")
    assert len(makers.findall(text)) == 1, "markup is read in one place"


# --- no name is printed without it ----------------------------------------------------------------

SAFE = frozenset(
    {"plain", "block", "short", "when", "size", "changes", "len", "max", "round", "_value", "_line"}
)
FOREIGN = frozenset(
    {
        *("branch", "repository", "path", "key", "directory", "output", "message", "reason"),
        *("reference_task_name", "task_def_name", "task_id", "workflow", "plot", "url", "ref"),
    }
)
"""What others name: none of these is ever printed as it came."""


@pytest.mark.parametrize(
    "module", [m for m in MODULES if m.name.startswith("perago.cli.")], ids=str
)
def test_what_others_name_is_never_printed_as_it_came(module: Module) -> None:
    for call in ast.walk(module.tree):
        if not isinstance(call, ast.Call) or getattr(call.func, "id", "") not in {"say", "note"}:
            continue
        for value in ast.walk(call):
            if not isinstance(value, ast.FormattedValue):
                continue
            inner = value.value
            if isinstance(inner, ast.Call) and getattr(inner.func, "id", "") in SAFE:
                continue
            words = {
                str(getattr(node, "attr", getattr(node, "id", getattr(node, "value", ""))))
                for node in ast.walk(inner)
            }
            where = f"{module.name}:{value.lineno} {ast.unparse(inner)}"
            assert not words & FOREIGN, f"{where} is printed without plain()"
