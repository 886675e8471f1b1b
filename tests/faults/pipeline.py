"""Six slow little steps under all three fences: something to kill."""

from __future__ import annotations

import time
from pathlib import Path

from pydantic import BaseModel

from perago import RetryPolicy, TaskControls, WorkspaceSpec, forbid_glob, require_glob, task

FILES = 30
PAUSE = 0.002
NOW = TaskControls(retry=RetryPolicy(count=3, delay_seconds=0))


class Nothing(BaseModel):
    """No params."""


class Count(BaseModel):
    """How many files there are."""

    files: int


def files(workspace: Path) -> list[Path]:
    return sorted(workspace.glob("**/*.txt"))


@task(
    name="make",
    owner_email="a@example.com",
    workspace=WorkspaceSpec(prefix="data", fence="hard", post=[require_glob("*.txt")]),
    controls=NOW,
)
def make(workspace: Path, params: Nothing) -> Count:
    for number in range(FILES):
        (workspace / f"{number:03}.txt").write_text(f"line {number}\n" * 50)
        time.sleep(PAUSE)  # the work
    return Count(files=FILES)


@task(
    name="double",
    owner_email="a@example.com",
    workspace=WorkspaceSpec(fence="head", pre=[require_glob("data/*.txt")]),
    controls=NOW,
)
def double(workspace: Path, params: Nothing) -> Count:
    for file in files(workspace / "data"):
        target = workspace / "double" / file.name
        target.parent.mkdir(exist_ok=True)
        target.write_text(file.read_text() * 2)
        time.sleep(PAUSE)  # the work
    return Count(files=len(files(workspace)))


@task(
    name="thin",
    owner_email="a@example.com",
    workspace=WorkspaceSpec(prefix="data", fence="lineage"),
    controls=NOW,
)
def thin(workspace: Path, params: Nothing) -> Count:
    for file in files(workspace)[::3]:
        file.unlink()
        time.sleep(PAUSE)  # the work
    return Count(files=len(files(workspace)))


@task(name="idle", owner_email="a@example.com", workspace=WorkspaceSpec(), controls=NOW)
def idle(workspace: Path, params: Nothing) -> Count:
    for file in files(workspace):
        file.write_text(file.read_text())
        time.sleep(PAUSE)  # the work
    return Count(files=len(files(workspace)))


@task(
    name="total",
    owner_email="a@example.com",
    workspace=WorkspaceSpec(fence="hard", post=[forbid_glob("**/*.tmp")]),
    controls=NOW,
)
def total(workspace: Path, params: Nothing) -> Count:
    found = files(workspace)
    lines = [f"{file.relative_to(workspace)} {file.stat().st_size}\n" for file in found]
    time.sleep(20 * PAUSE)  # the work
    (workspace / "total.csv").write_text("".join(lines))
    return Count(files=len(found))


@task(
    name="look",
    owner_email="a@example.com",
    workspace=WorkspaceSpec(read_only=True),
    controls=NOW,
)
def look(workspace: Path, params: Nothing) -> Count:
    time.sleep(20 * PAUSE)  # the work
    (workspace / "scratch").write_text("never seen")
    return Count(files=len(files(workspace)))
