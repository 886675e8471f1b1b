"""How the pages are played: where, after what, and what their prose tells the reader to do."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.consoles import commands
from tests.docs.pages import fenced
from tests.docs.shell import Shell

FOREIGN = ("PERAGO_", "LAKECTL_", "CONDUCTOR_", "PYTEST_", "OTEL_")
Edit = Callable[[Path], None]
SLEEP = "    import time; time.sleep(30)\n"


def _replaced(file: Path, pattern: str, text: str) -> None:
    edited, count = re.subn(pattern, lambda _: text, file.read_text(), count=1, flags=re.DOTALL)
    assert count, f"{file.name} has no {pattern}"
    file.write_text(edited)


def _sleeping(project: Path) -> None:
    """Do as the tutorial says: the second task takes half a minute."""
    _replaced(project / "tasks.py", r'(?<=publishes nothing\."""\n)', SLEEP)


def _awake(project: Path) -> None:
    tasks = project / "tasks.py"
    tasks.write_text(tasks.read_text().replace(SLEEP, ""))


@dataclass(frozen=True)
class Play:
    """How a page is played: where, after what, and what its prose tells the reader to do."""

    before: tuple[str, ...] = ()
    project: str = "."
    edits: Mapping[str, Edit] = field(default_factory=dict)
    """By the command before which they are made."""
    in_a_clone: frozenset[str] = frozenset()
    """Commands that need a clone of their own: ``make newcomer`` types them."""


PLAYS = {
    "docs/tutorial.md": Play(
        project="words",
        edits={
            "perago run workflow.json tasks --from data &": _sleeping,
            "perago runs -n 1": _awake,
        },
        in_a_clone=frozenset({"make run", "source .venv/bin/activate"}),
    ),
}


def play(page: str, shell: Shell, directory: Path, *, whole: bool = False) -> None:
    """Type all consoles of a page; ``whole``: also what is only typed in a clone."""
    how = PLAYS[page]
    project = directory / how.project
    for command in how.before:
        assert shell.run(command) == 0, command
    for block in fenced(page):
        if block.language == "python":
            _edited(block.text, project)
        elif block.language == "console":
            for typed in commands(block.text):
                if typed.command in how.in_a_clone and not whole:
                    continue
                if edit := how.edits.get(typed.command):
                    edit(project)
                shell.play(typed)


def clean_environment() -> dict[str, str]:
    """Return this environment without settings, and with its own programs before all others."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return clean | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{clean.get('PATH', '')}"}


def _edited(text: str, project: Path) -> None:
    """Do what a page shows: a whole file, or another declaration or function of ``tasks.py``."""
    tasks = project / "tasks.py"
    if named := re.match(r"# (\w+\.py)\n", text):
        (project / named[1]).write_text(text)
    elif declared := re.match(r'@task\(\n    name="(\w+)"', text):
        _replaced(tasks, rf'@task\(\n    name="{declared[1]}".*?\n\)\n', text)
    elif defined := re.match(r"def (\w+)", text):
        _replaced(tasks, rf"def {defined[1]}\(.*?\n(?=\n\n|\Z)", text)
    else:
        tasks.write_text(text)
