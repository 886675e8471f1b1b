"""A project with steps for people, in which each command runs in a process of its own.

A process is forked, not started: the package is imported once.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import jsonschema  # noqa: F401 - what commands import when they run is there before they are forked

import perago.cli.ending
import perago.cli.human_steps
import perago.cli.human_version
import perago.cli.session
import perago.cli.workflow_source  # noqa: F401 - as above
from perago.app.local import Home, home_of
from perago.brokers.local.human import LocalHumanTasks
from perago.cli.app import main
from perago.ports import Fetch
from perago.process.killing import LOG, VARIABLE
from perago.protocol.values import Commit
from perago.settings import load_settings
from perago.workflow.human import HumanTask
from tests import injection
from tests.environment import clean_environment

MANIFEST: Final = """
[[task]]
name = "correct"
owner_email = "songs@example.com"
description = "Correct the lyrics."
human = true
[task.result]
type = "object"
properties = { verses = { type = "integer" } }
additionalProperties = false
[task.workspace]
fence = "FENCE"
pre = [{ require_file = "song.txt" }]
post = [{ require_file = "lyrics.txt" }]

[[task]]
name = "release"
owner_email = "songs@example.com"
human = true
approval = true
[task.workspace]
read_only = true

[[task]]
name = "title"
owner_email = "songs@example.com"
human = true
[task.result]
type = "object"
properties = { title = { type = "string" } }
required = ["title"]
"""
GIVEN: Final = "${workflow.input.workspace}"


def step(task: str, workspace: str = GIVEN, **params: object) -> dict[str, Any]:
    """Write a step that a person does."""
    given: dict[str, object] = {"params": params}
    if workspace:
        given["workspace"] = workspace
    return {"name": task, "taskReferenceName": task, "type": "HUMAN", "inputParameters": given}


@dataclass(frozen=True)
class Said:
    """What a command printed, and how it ended; a negative code is a signal."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class Project:
    """One directory with a manifest, a workflow and files."""

    directory: Path
    fence: str = "head"
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "songs.toml").write_text(MANIFEST.replace("FENCE", self.fence))
        data = self.directory / "data"
        data.mkdir()
        (data / "song.txt").write_text("la la\n")
        (data / "other.txt").write_text("other\n")

    def workflow(self, *steps: Mapping[str, Any]) -> None:
        flow = {
            "name": "songs",
            "version": 1,
            "schemaVersion": 2,
            "ownerEmail": "songs@example.com",
            "tasks": [*steps],
        }
        (self.directory / "flow.json").write_text(json.dumps(flow))

    def run(self, *steps: Mapping[str, Any]) -> str:
        """Run until a person is needed; return the id of the run."""
        self.workflow(*steps)
        said = self.perago("run", "flow.json", "songs.toml", "--from", "data", "--json")
        assert said.code == 5, said
        assert said.json["status"] == "RUNNING"
        return str(said.json["run"])

    def perago(
        self,
        *words: str,
        person: str = "ada",
        at: Path | None = None,
        more: Mapping[str, str] | None = None,
    ) -> Said:
        """Run a command in a process of its own."""
        environment = {
            **clean_environment(),
            "PERAGO_PERSON": person,
            **self.environment,
            **(more or {}),
        }
        return forked(lambda: _command(words, at or self.directory, environment))

    def killed(self, place: str, *words: str, person: str = "ada") -> Said:
        """Run a command that dies at a point; the case fails if it does not."""
        log = self.directory / "killed"
        injection.expect(
            f"SIGKILL at {place}",
            lambda: log.read_text().splitlines().count(place) if log.exists() else 0,
        )
        deadly = {} if injection.OFF else {VARIABLE: place}
        return self.perago(*words, person=person, more={**deadly, LOG: str(log)})

    def take(self, *words: str, person: str = "ada") -> Path:
        """Take a step and return the directory with its files."""
        said = self.perago("human", "take", *words, "--json", person=person)
        assert said.code == 0, said
        return Path(said.json["workspace"])

    # --- what is there -----------------------------------------------------------------------

    @property
    def home(self) -> Home:
        return home_of(load_settings({**os.environ, **self.environment}, self.directory))

    def history(self) -> list[Commit]:
        """Return the commits of the branch, the newest first."""
        home = self.home
        found = [*home.store.history("songs", home.store.head("songs", "main").id)]
        home.close()
        return found

    def files(self) -> dict[str, bytes]:
        """Read the newest version."""
        home, target = self.home, self.directory / f"seen-{os.urandom(4).hex()}"
        head = home.store.head("songs", "main").id
        listed = [*home.store.listing("songs", head, "")]
        wanted = [Fetch(each.key, each.entry, target / each.key) for each in listed]
        home.store.fetch("songs", head, wanted, lambda _: None)
        home.close()
        return contents(target)

    def waiting(self) -> Sequence[HumanTask]:
        """Return the steps that wait for a person."""
        home = self.home
        found = LocalHumanTasks(home.state).waiting()
        home.close()
        return found


def contents(directory: Path) -> dict[str, bytes]:
    """Read the files below a directory."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def snapshot(directory: Path) -> dict[str, tuple[bytes, int, int]]:
    """Read the files below a directory with their times and inodes: nobody may touch them."""
    return {
        str(path.relative_to(directory)): (path.read_bytes(), found.st_mtime_ns, found.st_ino)
        for path in directory.rglob("*")
        if path.is_file()
        for found in [path.stat()]
    }


def forked(work: Callable[[], None]) -> Said:
    """Run something in a copy of this process; return what it said and how it ended."""
    readers = []
    writers = []
    for _ in range(2):
        reader, writer = os.pipe()
        readers.append(reader)
        writers.append(writer)
    pid = os.fork()
    if pid == 0:
        _in_child(work, readers, writers)
    for writer in writers:
        os.close(writer)
    said = [_all_of(reader) for reader in readers]
    _, status = os.waitpid(pid, 0)
    return Said(os.waitstatus_to_exitcode(status), *said)


def _all_of(reader: int) -> str:
    with os.fdopen(reader, "rb") as stream:
        return stream.read().decode()


def _in_child(work: Callable[[], None], readers: list[int], writers: list[int]) -> None:
    code = 70
    try:
        for reader in readers:
            os.close(reader)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in zip((nothing, *writers), range(3), strict=True):
            os.dup2(source, target)
        sys.stdin = os.fdopen(0, "r", closefd=False)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False)
        work()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - told, and the process ends
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _command(words: tuple[str, ...], directory: Path, environment: Mapping[str, str]) -> None:
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["perago", *words]
    main()
