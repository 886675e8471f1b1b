"""Running the command line the way a person does, in a directory of its own."""

from __future__ import annotations

import fcntl
import json
import os
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.environment import clean_environment
from tests.patience import LIMIT


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Perago = Callable[..., Answer]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Give an empty directory to work in."""
    return tmp_path


@pytest.fixture
def perago(project: Path) -> Perago:
    """Run ``perago`` in the project directory."""
    environment = clean_environment()

    def run(*arguments: str, env: dict[str, str] | None = None) -> Answer:
        done = subprocess.run(
            [sys.executable, "-m", "perago", *arguments],
            cwd=project,
            env=environment | (env or {}),
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def on_terminal(project: Path) -> Perago:
    """Run ``perago`` in the project directory on a terminal of 80 columns."""
    environment = clean_environment("COLUMNS", "NO_COLOR") | {"TERM": "xterm-256color"}

    def run(*arguments: str, columns: int = 80) -> Answer:
        words = [sys.executable, "-m", "perago", *arguments]
        leader, terminal = os.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        with subprocess.Popen(
            words, cwd=project, env=environment, stdin=terminal, stdout=terminal, stderr=terminal
        ) as process:
            os.close(terminal)
            shown = b"".join(iter(lambda: _read(leader), b""))
            code = process.wait(LIMIT)
        os.close(leader)
        return Answer(code, shown.decode().replace("\r\n", "\n"), "")

    return run


def _read(leader: int) -> bytes:
    try:
        return os.read(leader, 65536)
    except OSError:  # Linux says so when nobody has the terminal any more.
        return b""


def written(shown: str) -> str:
    """Return the characters of a terminal's output, without colours and cursor movements."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)


@pytest.fixture
def inside(project: Path, monkeypatch: pytest.MonkeyPatch) -> Perago:
    """Run ``perago`` inside this process: quick, for commands that start no executor."""
    from perago.cli import main  # noqa: PLC0415

    for name in list(os.environ):
        if name.startswith(("PERAGO_", "LAKECTL_", "CONDUCTOR_")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(project)
    known, path = set(sys.modules), list(sys.path)

    def run(*arguments: str, env: dict[str, str] | None = None) -> Answer:
        import contextlib  # noqa: PLC0415
        import io  # noqa: PLC0415

        for name, value in (env or {}).items():
            monkeypatch.setenv(name, value)
        out, err = io.StringIO(), io.StringIO()
        code = 0
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main(arguments)
            except SystemExit as end:
                code = int(end.code or 0)
            finally:
                sys.path[:] = path
                for name in set(sys.modules) - known:
                    if not name.startswith(("perago", "rich", "typer", "dotenv", "pydantic")):
                        del sys.modules[name]
        return Answer(code, out.getvalue(), err.getvalue())

    return run
