"""Four steps whose every tree is known beforehand, so that any mixture of them shows."""

from __future__ import annotations

import time
from pathlib import Path

from pydantic import BaseModel

from perago import RetryPolicy, TaskControls, TimeoutPolicy, WorkspaceSpec, require_file, task

# Retried often and soon: the point is what is left when everything around dies.
CONTROLS = TaskControls(
    retry=RetryPolicy(count=10, delay_seconds=1),
    timeout=TimeoutPolicy(policy="RETRY", seconds=120, response_seconds=10),
)


class Turn(BaseModel):
    """Which workflow this is, and how long a step pretends to work."""

    number: int
    seconds: float = 0.0


class Seen(BaseModel):
    """What a step found."""

    files: int


def after_write(number: int) -> dict[str, bytes]:
    """Say what the branch holds after the first step."""
    return {f"part{part}.txt": f"{number}:{part}".encode() for part in range(5)}


def after_change(number: int) -> dict[str, bytes]:
    """Say what the branch holds after the second step: changed, removed and added."""
    kept = {path: content * 2 for path, content in after_write(number).items()}
    del kept["part0.txt"]
    return {**kept, "deep/total.bin": str(number).encode() * 10_000}


@task(
    name="soak_write", owner_email="soak@example.com", workspace=WorkspaceSpec(), controls=CONTROLS
)
def write(workspace: Path, params: Turn) -> Seen:
    """Write the first files."""
    for path, content in after_write(params.number).items():
        (workspace / path).write_bytes(content)
        time.sleep(params.seconds / 5)  # the work
    return Seen(files=5)


@task(
    name="soak_change",
    owner_email="soak@example.com",
    workspace=WorkspaceSpec(pre=[require_file("part0.txt")], post=[require_file("deep/total.bin")]),
    controls=CONTROLS,
)
def change(workspace: Path, params: Turn) -> Seen:
    """Change all of them, remove one, add one."""
    (workspace / "part0.txt").unlink()
    for path, content in after_change(params.number).items():
        (workspace / path).parent.mkdir(exist_ok=True)
        (workspace / path).write_bytes(content)
        time.sleep(params.seconds / 5)  # the work
    return Seen(files=5)


@task(
    name="soak_idle", owner_email="soak@example.com", workspace=WorkspaceSpec(), controls=CONTROLS
)
def idle(workspace: Path, params: Turn) -> Seen:
    """Change nothing."""
    time.sleep(params.seconds / 5)  # the work
    return Seen(files=sum(path.is_file() for path in workspace.rglob("*")))


@task(
    name="soak_look",
    owner_email="soak@example.com",
    workspace=WorkspaceSpec(read_only=True),
    controls=CONTROLS,
)
def look(workspace: Path, params: Turn) -> Seen:
    """See that all is as the second step left it."""
    found = {
        path.relative_to(workspace).as_posix(): path.read_bytes()
        for path in workspace.rglob("*")
        if path.is_file()
    }
    if found != after_change(params.number):
        raise ValueError(f"found {sorted(found)}")
    return Seen(files=len(found))
