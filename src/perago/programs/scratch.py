"""What stands beside the workspace of a program: its home, its params, where its result goes."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from perago.errors import TaskFailed, WorkspaceError
from perago.ports import ProgramCall

SCRATCH: Final = "scratch"
MOST_RESULT_BYTES: Final = 16_000_000


@dataclass(frozen=True, slots=True)
class ProgramScratch:
    """A directory of one attempt, or of a program that serves many."""

    path: Path

    @classmethod
    def made_in(cls, attempt_dir: Path) -> ProgramScratch:
        """Make it in an attempt directory, beside the workspace."""
        made = cls(attempt_dir / SCRATCH)
        with _told(made.path):
            for directory in (made.path, made.home, made.temporary):
                directory.mkdir(mode=0o700)
        return made

    @property
    def home(self) -> Path:
        return self.path / "home"

    @property
    def temporary(self) -> Path:
        return self.path / "tmp"

    @property
    def result(self) -> Path:
        return self.path / "result.json"

    def hand_over(self, call: ProgramCall) -> dict[str, str]:
        """Write down what the program is told; return the names under which it finds it (Q3)."""
        params, attempt = self.path / "params.json", self.path / "attempt.json"
        for file, content in ((params, call.params), (attempt, call.attempt)):
            with _told(file):
                file.write_text(json.dumps(content), encoding="utf-8")
        found = {
            "PERAGO_PARAMS": str(params),
            "PERAGO_RESULT": str(self.result),
            "PERAGO_ATTEMPT": str(attempt),
        }
        return found | ({"PERAGO_WORKSPACE": str(call.workspace)} if call.workspace else {})

    def read_result(self) -> bytes | None:
        """Read what the program wrote as its result; None when there is nothing."""
        try:
            opened = os.open(self.result, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(error.strerror or str(error)) from error
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            os.close(opened)
            raise _unreadable("it is not a plain file")
        with os.fdopen(opened, "rb") as file:
            found = file.read(MOST_RESULT_BYTES + 1)
        if len(found) > MOST_RESULT_BYTES:
            raise _unreadable(f"it has more than {MOST_RESULT_BYTES:,} bytes")
        return found


def environment(scratch: ProgramScratch, names: tuple[str, ...]) -> dict[str, str]:
    """Make the environment of a program: nothing of the worker's but what it needs or declares."""
    given = {name: os.environ[name] for name in ("PATH", "LANG", *names) if name in os.environ}
    return {
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        **given,
        "HOME": str(scratch.home),
        "TMPDIR": str(scratch.temporary),
    }


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Say in one sentence why what a program needs could not be put beside its workspace."""
    try:
        yield
    except OSError as error:
        raise WorkspaceError(
            f"{path} cannot be written: {error.strerror or error}",
            remedy="check the workspace root of the worker, its permissions and free space",
        ) from error


def _unreadable(problem: str) -> TaskFailed:
    return TaskFailed(
        f"the result of the program cannot be read: {problem}",
        remedy="write one JSON object to the file that PERAGO_RESULT names, or nothing",
    )
