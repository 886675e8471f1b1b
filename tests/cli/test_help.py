"""The help of every command begins with a line that works when it is pasted."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from perago.cli.app import app
from perago.cli.exits import WAITING
from tests.cli.conftest import Answer, Perago
from tests.environment import clean_environment
from tests.patience import LIMIT, until


def _paths(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Walk the program, its groups and its commands."""
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from _paths(inner, (*path, name))


PATHS = list(_paths(get_command(app)))


def example_of(inside: Perago, *path: str) -> str:
    return inside(*path, "--help").out.split("\n", maxsplit=1)[0]


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_help_begins_with_an_example(inside: Perago, path: tuple[str, ...]) -> None:
    example = example_of(inside, *path)
    assert " ".join(("perago", *path)) in example
    lines = inside(*path, "--help").out.splitlines()
    assert lines[1] == ""
    assert lines[2].startswith("Usage: ")


@pytest.mark.timeout(900)
def test_every_example_works_when_pasted(inside: Perago, project: Path) -> None:
    """Servers are started by the example of ``dev up``, and used as it says."""
    shell = _Shell(project)
    examples = {path: example_of(inside, *path) for path in PATHS}
    shell.pastes(examples.pop(()))
    shell.directory = project / "words"
    start, status = examples.pop(("start",)), examples.pop(("status",))
    up, down = examples.pop(("dev", "up")), examples.pop(("dev", "down"))
    cancel, run = examples.pop(("cancel",)), examples[("run",)]
    page = examples.pop(("ui",))
    people = {path: examples.pop(path) for path in [*examples] if path[0] == "human"}
    needed = [("repo", "init"), ("register",)]  # by ``submit``
    shown = shell.pastes(up)
    try:
        use = next(line for line in shown.splitlines() if line.strip().startswith("set -a"))
        shell.before = f"{use.strip()}; "
        for example in (*(examples.pop(path) for path in needed), *examples.values()):
            shell.pastes(example)
        _steps_of_people(shell, people)
        shell.before += "export PERAGO_KILL_AT='count:0:before body:STOP'; "
        with shell.begun(run) as halted:
            until(lambda: shell.answers(cancel).code == 0, "a run to cancel")
            assert halted.wait(LIMIT) != 0
        shell.before = f"{use.strip()}; "
        with shell.begun(start) as worker:
            until(lambda: shell.answers(status).code == 0, "a worker that is ready")
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(LIMIT) == 0
        with shell.begun(page, stdout=subprocess.PIPE) as served:
            assert served.stdout is not None
            assert b"http://127.0.0.1:" in served.stdout.readline()
            served.send_signal(signal.SIGINT)
            assert served.wait(LIMIT) == 0
    finally:
        shell.pastes(down)


def _steps_of_people(shell: _Shell, examples: Mapping[tuple[str, ...], str]) -> None:
    """Paste the examples about people, each where its step waits."""
    (shell.directory / "people.toml").write_text(PEOPLE)
    answers = {path[-1]: example for path, example in examples.items()}
    for task, names in (
        ("correct", ("human", "list", "show", "take", "diff", "check", "return", "submit")),
        ("release", ("approve",)),
        ("correct", ("reject",)),
    ):
        waits = shell.answers(f"perago run people.toml:{task}")
        assert waits.code == WAITING, waits
        for name in names:
            said = shell.answers(answers.pop(name))
            assert said.code in {0, WAITING}, (name, said)
    assert answers == {}
    shell.pastes("perago cancel last")  # a rejected step waits once more, and so does its run


PEOPLE = """
[[task]]
name = "correct"
owner_email = "data@example.com"
human = true
[task.workspace]

[[task]]
name = "release"
owner_email = "data@example.com"
human = true
approval = true
[task.workspace]
read_only = true
"""


class _Shell:
    """A shell in which this Perago is on the PATH, and nothing is configured."""

    def __init__(self, directory: Path) -> None:
        self.environment = clean_environment()
        self.directory = directory
        self.before = ""

    def begun(self, line: str, stdout: int | None = None) -> subprocess.Popen[bytes]:
        words = ["bash", "-c", f"{self.before}exec {line}"]
        return subprocess.Popen(words, cwd=self.directory, env=self.environment, stdout=stdout)

    def answers(self, line: str) -> Answer:
        done = subprocess.run(
            ["bash", "-c", self.before + line],
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def pastes(self, line: str) -> str:
        answer = self.answers(line)
        assert answer.code == 0, (line, answer)
        return answer.out
