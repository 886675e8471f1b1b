"""Programs of the tests: a few lines of Python or shell, declared in a manifest beside them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from perago.testing import Lab

Declare = Callable[..., str]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path / "lab")
    yield made
    made.close()


@pytest.fixture
def declare(tmp_path: Path) -> Declare:
    """Declare a task whose body is a Python script, or the command that is given."""

    def make(script: str = "", more: str = "", workspace: str = "[task.workspace]") -> str:
        (tmp_path / "step.py").write_text(dedent(script))
        words = json.dumps([sys.executable, "{here}/step.py"])
        manifest = tmp_path / "tasks.toml"
        lines = ["[[task]]", 'name = "step"', 'owner_email = "a@example.com"']
        lines += [] if "command" in more else [f"command = {words}"]
        manifest.write_text("\n".join([*lines, more, workspace, ""]))
        return f"{manifest}:step"

    return make
