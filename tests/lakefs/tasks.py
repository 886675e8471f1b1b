"""Tasks that the tests of lakeFS run; the clock of the tests skips what they wait for."""

from __future__ import annotations

import math
from pathlib import Path

from pydantic import BaseModel

from perago import PublishBudget, TaskControls, TimeoutPolicy, WorkspaceSpec, task
from tests.patience import scaled

OWNER = "team@example.com"
GIVEN = {
    "ws/in.txt": "given",
    "ws/old.txt": "to be removed",
    "other/kept.txt": "kept",
    "ws2/near.txt": "near",
}
MARGIN_SECONDS = 20.0
CONTROLS = TaskControls(
    publish_budget=PublishBudget(
        observed_merge_p99_seconds=0.4,
        safety_margin_seconds=MARGIN_SECONDS,
        lakefs_merge_timeout_seconds=30,
        conductor_completion_timeout_seconds=1,
        worker_shutdown_grace_seconds=1,
        heartbeat_interval_seconds=1,
    )
)


class Text(BaseModel):
    text: str = "new"


class Done(BaseModel):
    files: int = 0


@task(name="step", owner_email=OWNER, workspace=WorkspaceSpec(prefix="ws"), controls=CONTROLS)
def step(workspace: Path, params: Text) -> Done:
    """Add a file, remove one, leave one."""
    (workspace / "out.txt").write_text(params.text)
    (workspace / "old.txt").unlink()
    return Done(files=2)


PATIENT = TaskControls(
    publish_budget=PublishBudget(
        observed_merge_p99_seconds=1,
        safety_margin_seconds=60,
        lakefs_merge_timeout_seconds=61,
        conductor_completion_timeout_seconds=1,
        worker_shutdown_grace_seconds=1,
        heartbeat_interval_seconds=1,
    )
)


@task(name="patient", owner_email=OWNER, workspace=WorkspaceSpec(prefix="ws"), controls=PATIENT)
def patient(workspace: Path, params: Text) -> Done:
    """Do the same, with a margin that lasts."""
    return step(workspace, params)


def after(text: str = "new") -> dict[str, bytes]:
    """Say what the repository holds when the step is done."""
    kept = {key: value.encode() for key, value in GIVEN.items() if key != "ws/old.txt"}
    return kept | {"ws/out.txt": text.encode()}


@task(name="idle", owner_email=OWNER, workspace=WorkspaceSpec(prefix="ws"), controls=CONTROLS)
def idle(workspace: Path, params: Text) -> Done:
    """Change nothing."""
    return Done(files=len(list(workspace.iterdir())))


@task(name="everything", owner_email=OWNER, workspace=WorkspaceSpec(), controls=CONTROLS)
def everything(workspace: Path, params: Text) -> Done:
    """Write next to every file a copy of it, whatever its name."""
    files = [path for path in workspace.rglob("*") if path.is_file()]
    for path in files:
        path.with_name(f"{path.name}.copy").write_bytes(path.read_bytes())
    return Done(files=len(files))


@task(name="clear", owner_email=OWNER, workspace=WorkspaceSpec(prefix="ws"), controls=CONTROLS)
def clear(workspace: Path, params: Text) -> Done:
    """Remove everything and leave one file."""
    files = [path for path in workspace.rglob("*") if path.is_file()]
    for path in files:
        path.unlink()
    (workspace / "left").write_text("left")
    return Done(files=len(files))


class Many(BaseModel):
    count: int = 1050


@task(name="fill", owner_email=OWNER, workspace=WorkspaceSpec(prefix="ws"), controls=CONTROLS)
def fill(workspace: Path, params: Many) -> Done:
    """Write many small files in a few directories."""
    for number in range(params.count):
        file = workspace / f"d{number % 7}" / f"f{number:05}"
        file.parent.mkdir(exist_ok=True)
        file.write_text(str(number))
    return Done(files=params.count)


@task(
    name="narrow",
    owner_email=OWNER,
    workspace=WorkspaceSpec(prefix="ws", include=["raw/**"], exclude=["**/*.tmp"]),
    controls=CONTROLS,
)
def narrow(workspace: Path, params: Text) -> Done:
    """Remove all that is seen, and write what may and what may not be published."""
    seen = [path for path in workspace.rglob("*") if path.is_file()]
    for path in seen:
        path.unlink()
    (workspace / "raw").mkdir(exist_ok=True)
    (workspace / "raw/new.csv").write_text("new")
    (workspace / "raw/scratch.tmp").write_text("scratch")
    return Done(files=len(seen))


class Big(BaseModel):
    how: str = "leave"


MIB = 1 << 20
BIG_BYTES = 65 * MIB


def big_content() -> bytes:
    return b"".join(bytes([number]) * MIB for number in range(BIG_BYTES // MIB))


@task(name="big", owner_email=OWNER, workspace=WorkspaceSpec(prefix="ws"), controls=CONTROLS)
def big(workspace: Path, params: Big) -> Done:
    """Treat a file that travels in parts."""
    file = workspace / "big.bin"
    match params.how:
        case "make":
            file.write_bytes(big_content())
        case "touch":
            file.write_bytes(file.read_bytes())
        case "append":
            with file.open("ab") as opened:
                opened.write(b"more")
    (workspace / "how.txt").write_text(params.how)
    return Done()


class Named(BaseModel):
    name: str


@task(name="save", owner_email=OWNER, workspace=WorkspaceSpec(prefix="ws"), controls=CONTROLS)
def save(workspace: Path, params: Named) -> Done:
    """Write one file of a given name."""
    (workspace / params.name).write_bytes(b"saved")
    return Done(files=1)


@task(name="double", owner_email=OWNER, workspace=WorkspaceSpec(prefix="ws"), controls=CONTROLS)
def double(workspace: Path, params: Named) -> Done:
    """Write a file of twice the content."""
    (workspace / f"{params.name}.double").write_bytes((workspace / params.name).read_bytes() * 2)
    return Done(files=1)


class Blob(BaseModel):
    size: int


@task(name="blob", owner_email=OWNER, workspace=WorkspaceSpec(prefix="ws"), controls=CONTROLS)
def blob(workspace: Path, params: Blob) -> Done:
    """Write so many bytes."""
    (workspace / "blob.bin").write_bytes(bytes(params.size))
    return Done(files=1)


HURRY_SECONDS = math.ceil(scaled(1))


@task(
    name="hurried",
    owner_email=OWNER,
    workspace=WorkspaceSpec(prefix="ws"),
    controls=TaskControls(timeout=TimeoutPolicy(seconds=HURRY_SECONDS)),
)
def hurried(workspace: Path, params: Text) -> Done:
    """Have no time."""
    return Done()
