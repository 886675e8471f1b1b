"""A task on a workspace of one file; 0.6.1 and this version both take it."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel

from perago import WorkspaceSpec, task


class Numbers(BaseModel):
    """What comes in."""

    number: int


class Total(BaseModel):
    """What goes out."""

    total: int


@task(name="bench_tiny", owner_email="bench@example.com", workspace=WorkspaceSpec(prefix="/"))
def tiny(workspace: Path, params: Numbers) -> Total:
    """Write one file beside the one that is there."""
    (workspace / "total.txt").write_text(str(params.number + 1))
    return Total(total=params.number + 1)
