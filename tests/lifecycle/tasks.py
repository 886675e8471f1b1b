"""Tasks that the lifecycle tests run."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from pydantic import BaseModel

from perago import (
    GuardrailViolation,
    MetricRecorder,
    TaskFailed,
    TaskTerminalError,
    WorkspaceSpec,
    forbid_glob,
    require_file,
    task,
)

OWNER = "team@example.com"


class Text(BaseModel):
    text: str = "new"


class Wrote(BaseModel):
    length: int


class How(BaseModel):
    how: str = ""


WRITES = WorkspaceSpec(prefix="ws", pre=[require_file("in.txt")], post=[require_file("out.txt")])
GIVEN = {"ws/in.txt": "given", "other/kept.txt": "kept", "ws2/near.txt": "near"}


@task(name="write", owner_email=OWNER, workspace=WRITES)
def write(workspace: Path, params: Text) -> Wrote:
    (workspace / "out.txt").write_text(params.text)
    return Wrote(length=len(params.text))


@task(name="hard", owner_email=OWNER, workspace=WRITES.model_copy(update={"fence": "hard"}))
def write_hard(workspace: Path, params: Text) -> Wrote:
    return write(workspace, params)


@task(name="lineage", owner_email=OWNER, workspace=WRITES.model_copy(update={"fence": "lineage"}))
def write_lineage(workspace: Path, params: Text) -> Wrote:
    return write(workspace, params)


@task(
    name="beside",
    owner_email=OWNER,
    workspace=WorkspaceSpec(prefix="ws", exclude=["cache/**", "Old/**"]),
)
def beside(workspace: Path, params: Text) -> Wrote:
    """Write a file whose name may not go with what the task does not see."""
    path = workspace / params.text
    path.parent.mkdir(exist_ok=True)
    path.write_text("new")
    return Wrote(length=1)


@task(
    name="forgetful",
    owner_email=OWNER,
    workspace=WorkspaceSpec(prefix="ws", post=[require_file("out.txt")]),
)
def forgetful(workspace: Path, params: Text) -> Wrote:
    (workspace / "other.txt").write_text(params.text)
    return Wrote(length=0)


@task(name="turn", owner_email=OWNER, workspace=WorkspaceSpec(prefix="ws"))
def turn(workspace: Path, params: Text) -> Wrote:
    """Turn a file into a directory, or a directory into a file."""
    path = workspace / params.text
    if path.is_dir():
        shutil.rmtree(path)
        path.write_text("a file")
    else:
        path.unlink()
        path.mkdir()
        (path / "deep").write_text("a directory")
    return Wrote(length=1)


@task(name="keep", owner_email=OWNER, workspace=WorkspaceSpec(prefix="ws"))
def keep(workspace: Path, params: Text) -> Wrote:
    """Publish a copy of what an earlier attempt wrote."""
    content = (workspace / "out.txt").read_bytes()
    (workspace / "copy.txt").write_bytes(content)
    return Wrote(length=len(content))


@task(name="touch", owner_email=OWNER, workspace=WorkspaceSpec(prefix="ws"))
def touch(workspace: Path, params: Text) -> Wrote:
    same = (workspace / "in.txt").read_bytes()
    (workspace / "in.txt").write_bytes(same)
    (workspace / "empty").mkdir()
    return Wrote(length=0)


@task(name="look", owner_email=OWNER, workspace=WorkspaceSpec(prefix="ws", read_only=True))
def look(workspace: Path, params: Text) -> Wrote:
    (workspace / "scratch.txt").write_text("discarded")
    return Wrote(length=len(list(workspace.iterdir())))


@task(name="pure", owner_email=OWNER)
def pure(params: Text, metrics: MetricRecorder) -> Wrote:
    with metrics.timer("pure.seconds"):
        metrics.gauge("pure.length", len(params.text), labels={"kind": "text"})
    return Wrote(length=len(params.text))


@task(
    name="no_json",
    owner_email=OWNER,
    workspace=WorkspaceSpec(prefix="ws", pre=[forbid_glob("*.json")], post=[forbid_glob("*.json")]),
)
def no_json(workspace: Path, params: Text) -> Wrote:
    for file in workspace.iterdir():
        file.unlink()
    (workspace / "out.txt").write_text(params.text)
    return Wrote(length=0)


class Gone(BaseException):
    """What no ``except Exception`` meets."""


class MuteError(Exception):
    """Cannot even say what it is."""

    def __str__(self) -> str:
        raise SystemExit(9)


RAISED: dict[str, BaseException] = {
    "terminal error": TaskTerminalError("never"),
    "task failed": TaskFailed("not today"),
    "system exit": SystemExit(3),
    "base": Gone("out of reach"),
    "generator exit": GeneratorExit(),
    "mute": MuteError(),
    "surrogate": ValueError("half \ud800"),
    "memory": MemoryError(),
}


def moody(workspace: Path) -> None:
    mood = (workspace / "in.txt").read_text()
    if mood == "violate":
        raise GuardrailViolation("the mood is bad")
    if mood == "bug":
        raise KeyError("guard bug")
    if mood in RAISED:
        raise RAISED[mood]


@task(name="guarded", owner_email=OWNER, workspace=WorkspaceSpec(prefix="ws", pre=[moody]))
def guarded(workspace: Path, params: Text) -> Wrote:
    return Wrote(length=1)


@task(name="misbehave", owner_email=OWNER, workspace=WorkspaceSpec(prefix="ws"))
def misbehave(workspace: Path, params: How) -> Wrote:  # noqa: C901 - one branch per misdeed
    match params.how:
        case "fail":
            raise TaskFailed("not today")
        case "terminal":
            raise TaskTerminalError("never")
        case "raise":
            raise ZeroDivisionError
        case "exit":
            sys.exit(3)
        case how if how in RAISED:
            raise RAISED[how]
        case "recursion":
            return misbehave(workspace, params)
        case "result":
            return "a text"  # type: ignore[return-value]
        case "symlink":
            (workspace / "link").symlink_to("/etc/passwd")
        case "action":
            pass
        case "vanish":
            os.rename(workspace, workspace.with_name("elsewhere"))  # noqa: PTH104 - the misdeed
        case "rmdir":
            for file in workspace.iterdir():
                file.unlink()
            workspace.rmdir()
    return Wrote(length=0)


@task(name="root", owner_email=OWNER, workspace=WorkspaceSpec())
def root(workspace: Path, params: How) -> Wrote:
    (workspace / "_lakefs_actions").mkdir()
    (workspace / "_lakefs_actions" / "x.yaml").write_text("x")
    return Wrote(length=0)
