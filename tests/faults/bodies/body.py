"""What a hostile body is: a deed in an attempt, and what must have become of it.

The names of bodies are ``class/deed``; they are part of the names of the cases in the report.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.bodies import canary

Tree = Mapping[str, bytes]
COMPLETED, FAILED, TIMED_OUT = "COMPLETED", "FAILED", "TIMED_OUT"
DONE = frozenset({COMPLETED})
FAILS = frozenset({FAILED})
EITHER = DONE | FAILS
"""Where both are right: whole and exact, or refused."""
WRITING_SECONDS = 25.0
"""How long something goes on by itself, unless it is told to stop before."""
BASE: Tree = {
    "data/in.txt": b"in\n",
    "data/old.txt": b"old\n",
    "data/in.bin": bytes(range(256)) * 256,
    "data/d/one.txt": b"one\n",
    "data/d/two.txt": b"two\n",
    "data/d/deep/three.txt": b"three\n",
    "data/skipped/x": b"not for this task\n",
    "other/x.txt": b"of others\n",
    **{f"data/many/{number:03}.txt": b"%d\n" % number for number in range(20)},
}
"""What A holds; tasks see what is below ``data/`` but for ``skipped/``."""
HIDDEN = ("data/skipped/", "other/")


def ordinary(tree: Tree) -> dict[str, bytes]:
    """Say what a well-behaved body makes of a tree."""
    changed = {**tree, "data/in.txt": b"changed\n", "data/out.txt": b"made\n"}
    changed.pop("data/old.txt", None)
    return changed


def work(workspace: Path) -> None:
    """Do what :func:`ordinary` says."""
    (workspace / "in.txt").write_bytes(b"changed\n")
    (workspace / "out.txt").write_bytes(b"made\n")
    (workspace / "old.txt").unlink(missing_ok=True)


@dataclass(frozen=True)
class Scene:
    """Where a deed is done: the attempt, and places outside that were made for this case only."""

    workspace: Path
    scratch: Path
    metrics: Any = None
    data: Any = None

    @property
    def attempt_dir(self) -> Path:
        return self.workspace.parent

    @property
    def marker(self) -> Path:
        return self.attempt_dir / ".perago-attempt.json"

    @property
    def outside(self) -> Path:
        """A dataset of somebody else; never to be changed."""
        return self.scratch / "outside"

    @property
    def ground(self) -> Path:
        """What the root of all attempts is in, beside other people's files."""
        return self.scratch.parent / "ground"

    @property
    def elsewhere(self) -> Path:
        """A place outside where a deed may leave things."""
        place = self.scratch / "elsewhere"
        place.mkdir(exist_ok=True)
        return place

    def watch(self, path: Path) -> None:
        """Make a canary of what a deed has just put somewhere."""
        with (self.scratch / "watched.jsonl").open("a") as file:
            file.write(json.dumps([str(path), canary.snapshot(path)]) + "\n")

    def going_on(self) -> Callable[[], bool]:
        """Tell those who go on after the body how long they may."""
        stop, end = str(self.scratch / "stop"), time.monotonic() + WRITING_SECONDS
        exists, monotonic = os.path.exists, time.monotonic
        return lambda: monotonic() < end and not exists(stop)


Deed = Callable[[Scene], object]
Register = Callable[[Deed], Deed]


@dataclass(frozen=True)
class Body:
    """One hostile body."""

    name: str
    deed: Deed
    statuses: frozenset[str]
    reason: str
    """What the reason of a failure must match, besides being documented."""
    tree: Callable[[Tree], Tree]
    """What a completed attempt has published, given what a well-behaved one would have."""
    valid: Callable[[str, bytes], bool] | None
    """Whether a file beyond that tree may be there: of those who write on."""
    loose: bool
    """Whether the deed itself changes stamps of the canary (another name for one of its files)."""
    needs: frozenset[str]
    everywhere: bool
    """Whether it is about directories, so that each kind of file system has its say."""
    quick: bool
    """Whether it is of the selection that every run of the tests has."""
    task: str
    interrupts: bool
    """Whether the deed ends the runner, so that the run has to be resumed."""
    worker: bool
    """Whether it could end a worker, so that a whole one is tried."""
    stays: bool
    """Whether an attempt directory may stay until the sweep after the run."""
    renames: bool
    """Whether the deed leaves a directory that cannot be told to be ours, of another name or
    without a marker: then it is the author's own."""
    data: Any
    """What the deed is given as part of the input."""

    def __str__(self) -> str:
        return self.name


BODIES: dict[str, Body] = {}


def same(tree: Tree) -> Tree:
    return tree


def more(**files: bytes) -> Callable[[Tree], Tree]:
    """Say that the deed makes these files too; ``__`` stands for ``/``, ``_dot_`` for a dot."""
    named = {f"data/{name.replace('__', '/')}": content for name, content in files.items()}
    return lambda tree: {**tree, **named}


def plus(files: Tree) -> Callable[[Tree], Tree]:
    return lambda tree: {**tree, **{f"data/{name}": content for name, content in files.items()}}


def body(
    name: str,
    statuses: frozenset[str] = DONE,
    reason: str = "",
    *,
    tree: Callable[[Tree], Tree] = same,
    valid: Callable[[str, bytes], bool] | None = None,
    loose: bool = False,
    needs: str = "",
    everywhere: bool = False,
    quick: bool = False,
    task: str = "write",
    interrupts: bool = False,
    worker: bool = False,
    stays: bool = False,
    renames: bool = False,
    data: Any = None,
) -> Register:
    """Register a deed under a name."""

    def register(deed: Deed) -> Deed:
        assert name not in BODIES, name
        BODIES[name] = Body(
            name,
            deed,
            statuses,
            reason,
            tree,
            valid,
            loose,
            frozenset(needs.split()),
            everywhere,
            quick,
            task,
            interrupts,
            worker,
            stays,
            renames,
            data,
        )
        return deed

    return register
