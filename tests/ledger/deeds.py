"""Tasks whose every run is different, so that content and result show which run they are of."""

from __future__ import annotations

import uuid
from pathlib import Path

from pydantic import BaseModel

from perago import WorkspaceSpec, task
from perago.protocol.kinds import FenceKind

OWNER = "team@example.com"
GIVEN = {"ws/in.txt": "given"}


class Text(BaseModel):
    text: str = "new"


class Wrote(BaseModel):
    token: str


def _write(workspace: Path, params: Text) -> Wrote:
    token = uuid.uuid4().hex
    (workspace / "out.txt").write_text(f"{params.text} {token}")
    return Wrote(token=token)


def _spec(fence: FenceKind) -> WorkspaceSpec:
    return WorkspaceSpec(prefix="ws", fence=fence)


@task(name="head", owner_email=OWNER, workspace=_spec("head"))
def head(workspace: Path, params: Text) -> Wrote:
    return _write(workspace, params)


@task(name="hard", owner_email=OWNER, workspace=_spec("hard"))
def hard(workspace: Path, params: Text) -> Wrote:
    return _write(workspace, params)


@task(name="lineage", owner_email=OWNER, workspace=_spec("lineage"))
def lineage(workspace: Path, params: Text) -> Wrote:
    return _write(workspace, params)


@task(name="touch", owner_email=OWNER, workspace=_spec("head"))
def touch(workspace: Path, params: Text) -> Wrote:
    return Wrote(token=uuid.uuid4().hex)


@task(name="look", owner_email=OWNER, workspace=WorkspaceSpec(prefix="ws", read_only=True))
def look(workspace: Path, params: Text) -> Wrote:
    return Wrote(token=uuid.uuid4().hex)
