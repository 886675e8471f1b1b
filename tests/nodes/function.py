"""The golden cases as a Python function."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel

from perago import (
    MetricRecorder,
    TaskFailed,
    TaskTerminalError,
    WorkspaceSpec,
    forbid_glob,
    require_file,
    task,
)


class Params(BaseModel):
    do: str
    text: str = ""


class Result(BaseModel):
    size: int = 0


@task(
    name="golden",
    owner_email="tests@example.com",
    workspace=WorkspaceSpec(
        prefix="/in", pre=[require_file("in.txt")], post=[forbid_glob("*.tmp")]
    ),
)
def golden(workspace: Path, params: Params, metrics: MetricRecorder) -> Result:
    match params.do:
        case "write":
            (workspace / "out.txt").write_text(params.text)
        case "remove":
            (workspace / "in.txt").unlink()
        case "temporary":
            (workspace / "left.tmp").write_text("x")
        case "measure":
            metrics.gauge("songs", 3.0, labels={"kind": "flac"})
        case "fail":
            raise TaskFailed("no song")
        case "never":
            raise TaskTerminalError("no song")
        case "lie":
            return {"size": "much"}  # type: ignore[return-value]
    return Result(size=len(params.text))
