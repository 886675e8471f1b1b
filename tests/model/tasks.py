"""A task whose results can be told apart, and told when they are mixed (V4)."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel

from perago import WorkspaceSpec, task
from perago.protocol.kinds import FenceKind

GIVEN = {"ws/all.txt": "given", "other/kept.txt": "kept"}


class Text(BaseModel):
    text: str = ""


def deposit(workspace: Path, params: Text) -> Text:
    """Leave a file of one's own and change the one that all change; without a text, do nothing."""
    if params.text:
        (workspace / f"{params.text}.txt").write_text(params.text)
        (workspace / "all.txt").write_text(params.text)
    return params


@task(name="own", owner_email="a@b.c", workspace=WorkspaceSpec(prefix="ws"))
def own(workspace: Path, params: Text) -> Text:
    """Leave a file of one's own only: two of them can be merged."""
    (workspace / f"{params.text}.txt").write_text(params.text)
    return params


@task(name="own_hard", owner_email="a@b.c", workspace=WorkspaceSpec(prefix="ws", fence="hard"))
def own_hard(workspace: Path, params: Text) -> Text:
    return own(workspace, params)


@task(name="head", owner_email="a@b.c", workspace=WorkspaceSpec(prefix="ws"))
def head(workspace: Path, params: Text) -> Text:
    return deposit(workspace, params)


@task(name="lineage", owner_email="a@b.c", workspace=WorkspaceSpec(prefix="ws", fence="lineage"))
def lineage(workspace: Path, params: Text) -> Text:
    return deposit(workspace, params)


@task(name="hard", owner_email="a@b.c", workspace=WorkspaceSpec(prefix="ws", fence="hard"))
def hard(workspace: Path, params: Text) -> Text:
    return deposit(workspace, params)


DEPOSITS = dict[FenceKind, object](head=head, lineage=lineage, hard=hard)
