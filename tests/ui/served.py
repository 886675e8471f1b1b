"""A project with a history, and the page of it in a process of its own."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlencode, urlsplit

from tests.environment import clean_environment
from tests.patience import LIMIT

HOSTILE = "<script>alert(1)</script>&\"'"
"""A name that would be a program, if a page took it for one."""
TASKS = """
from pathlib import Path

from pydantic import BaseModel

from perago import (
    RetryPolicy, TaskControls, TaskFailed, WorkspaceSpec, forbid_glob, task
)


class Params(BaseModel):
    text: str = "words"
    how: str = ""
    hold: str = ""


class Nothing(BaseModel):
    pass


class Result(BaseModel):
    files: int = 1


@task(
    name="write",
    owner_email="tests@example.com",
    workspace=WorkspaceSpec(post=[forbid_glob("*.tmp")]),
    controls=TaskControls(retry=RetryPolicy(count=1, delay_seconds=0)),
)
def write(workspace: Path, params: Params) -> Result:
    folder = workspace / "<script>alert(1)<"
    folder.mkdir(exist_ok=True)
    (folder / "script>&'.txt").write_text(params.text)
    (workspace / "out.txt").write_text(params.text)
    if params.how == "guard":
        (workspace / "left.tmp").touch()
    if params.how == "fail":
        raise TaskFailed("<script>alert(2)</script> is no song")
    if params.how == "bug":
        raise ValueError("a mistake of the author")
    while params.hold and not Path(params.hold).exists():
        pass
    return Result()


@task(
    name="look", owner_email="tests@example.com", workspace=WorkspaceSpec(read_only=True)
)
def look(workspace: Path, params: Nothing) -> Result:
    assert (workspace / "out.txt").exists()
    return Result()
"""
WORKFLOW = {
    "name": "songs <b>",
    "version": 1,
    "schemaVersion": 2,
    "ownerEmail": "tests@example.com",
    "tasks": [
        {
            "name": "write",
            "taskReferenceName": "write",
            "type": "SIMPLE",
            "inputParameters": {
                "workspace": "${workflow.input.workspace}",
                "params": "${workflow.input.params}",
            },
        },
        {
            "name": "look",
            "taskReferenceName": "look",
            "type": "SIMPLE",
            "inputParameters": {"workspace": "${write.output.workspace}", "params": {}},
        },
    ],
}


@dataclass(frozen=True)
class Project:
    """A directory with a workflow, its tasks and its home."""

    directory: Path

    @classmethod
    def at(cls, directory: Path) -> Self:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "songs.py").write_text(TASKS)
        (directory / "workflow.json").write_text(json.dumps(WORKFLOW))
        return cls(directory)

    @property
    def home(self) -> Path:
        return self.directory / ".perago"

    def begin(self, **params: str) -> subprocess.Popen[bytes]:
        words = ["run", "workflow.json", "songs", "--repo", "songs", "--input"]
        return self._start(*words, f"params={json.dumps(params)}")

    def run(self, **params: str) -> tuple[int, str]:
        """Run it to its end; return the exit code, and what was printed."""
        with self.begin(**params) as running:
            said, _ = running.communicate(timeout=LIMIT)
            return running.returncode, said.decode()

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "perago", *words],
            cwd=self.directory,
            env=clean_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    @contextmanager
    def served(self, *words: str) -> Iterator[Served]:
        """Serve the page of the home, and end it as Ctrl-C does."""
        with subprocess.Popen(
            [sys.executable, "-m", "perago", "ui", "--json", *words],
            cwd=self.directory,
            env=clean_environment(),
            stdout=subprocess.PIPE,
        ) as process:
            try:
                assert process.stdout is not None
                said = b"".join(process.stdout.readline() for _ in range(3))
                yield Served(json.loads(said)["address"])
                process.send_signal(signal.SIGINT)
                assert process.wait(LIMIT) == 0
            finally:
                process.kill()


@dataclass(frozen=True)
class Got:
    """An answer of the page."""

    status: int
    headers: Mapping[str, str]
    text: str


@dataclass(frozen=True)
class Served:
    """A page that is there; ``address`` is what a person opens."""

    address: str

    @property
    def base(self) -> str:
        return self.address.partition("/?")[0]

    @property
    def host(self) -> str:
        return urlsplit(self.address).netloc

    def ask(
        self,
        path: str,
        cookie: str = "",
        method: str = "GET",
        form: Mapping[str, str] | None = None,
        **headers: str,
    ) -> Got:
        """Ask as a program does: nothing is followed, kept or added."""
        connection = http.client.HTTPConnection(self.host, timeout=LIMIT)
        body = urlencode(form or {}) if method == "POST" else None
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if cookie:
            sent["Cookie"] = cookie
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        text = answer.read().decode()
        connection.close()
        return Got(answer.status, found, text)

    def let_in(self) -> str:
        """Use the token; return the cookie."""
        answer = self.ask(self.address.removeprefix(self.base))
        assert answer.status == 303, answer
        return answer.headers["set-cookie"].partition(";")[0]
