"""What others named is printed as it is called, on one line, whatever is in the name."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from perago.cli import screen
from perago.cli.seed import read_input
from perago.cli.workflow_source import workflow_file
from perago.errors import PeragoError, RuntimeConfigError, UsageError
from perago.protocol.printable import printable
from perago.settings import load_settings
from perago.wiring import Home
from tests.cli.conftest import Perago
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
}


@pytest.mark.parametrize("name", HOSTILE.values(), ids=list(HOSTILE))
def test_a_name_is_one_line_of_characters(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    screen.say(f"[green]+[/green] {screen.plain(name)}")
    screen.table(["name", "more"], [[screen.plain(name), 1]])
    screen.fields({"name": screen.plain(name)})
    screen.complain(UsageError(f"no {name}", remedy="give another"), as_json=False)
    lines = "".join(capsys.readouterr()).rstrip("\n").split("\n")
    assert len(lines) == (6 if name == HOSTILE["line"] else 5)
    assert all(line.isprintable() for line in lines)
    shown = name if name.isprintable() else printable(name)
    assert lines[0] == f"+ {shown}"
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
