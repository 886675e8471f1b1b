"""Runs inside the environment of ``perago`` 0.6.1: its own functions, told what to do by lines."""

from __future__ import annotations

import json
import os
import shutil
import sys
import uuid
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel

# Another perago than the one of this checkout, whose types would not fit.
perago: Any = import_module("perago")
config: Any = import_module("perago.config")
lakefs_runtime: Any = import_module("perago.lakefs_runtime")
execution: Any = import_module("perago.execution")
conductor_models: Any = import_module("perago.conductor_runtime.models")


class Turn(BaseModel):
    """How many files to change, and to what."""

    turn: int
    changed: int
    size: int


class Nothing(BaseModel):
    """No result."""


@perago.task(
    name="change",
    owner_email="bench@example.com",
    workspace=perago.WorkspaceSpec(prefix="/"),
)  # type: ignore[untyped-decorator]
def change(workspace: Path, params: Turn) -> Nothing:
    """Change the first files."""
    files = sorted(path for path in workspace.rglob("*") if path.suffix == ".bin")
    for path in files[: params.changed]:
        path.write_bytes((params.turn.to_bytes(8, "big") * (params.size // 8 + 1))[: params.size])
    return Nothing()


def attempt_of(workspace: dict[str, str], params: dict[str, int]) -> Any:
    """Make what its poller would hand over."""
    return conductor_models.ConductorTaskAttempt(
        workflow_instance_id=str(uuid.uuid4()),
        task_id=str(uuid.uuid4()),
        retry_count=0,
        task_def_name="change",
        reference_task_name="change",
        seq=1,
        iteration=0,
        status="IN_PROGRESS",
        input_data={"workspace": workspace, "params": params},
    )


def main() -> None:
    """Answer every line with one."""
    runtime = lakefs_runtime.LakeFSWorkspaceRuntime.from_config(
        config.LakeFSConfig(
            endpoint_url=os.environ["BENCH_LAKEFS"],
            access_key_id=os.environ["BENCH_KEY"],
            secret_access_key=os.environ["BENCH_SECRET"],
        )
    )
    spec = perago.WorkspaceSpec(prefix="/")
    definition = perago.load_module_task("__main__")
    for line in sys.stdin:
        asked = json.loads(line)
        directory = Path(asked["directory"])
        given = {key: asked[key] for key in ("repository", "branch", "ref")}
        given["refType"] = "commit"
        answer: object = None
        attempt = attempt_of(given, asked.get("params", {}))
        if asked["do"] == "attempt":
            result = execution.run_workspace_task_attempt(
                definition,
                attempt.input_data,
                attempt,
                directory,
                download_workspace=runtime.download_workspace,
                load_current_attempt=replace,
                stage_workspace=runtime.stage_workspace,
                publish_workspace=runtime.publish_workspace,
                cleanup_staging=runtime.cleanup_staging,
                complete_noop_workspace=runtime.complete_noop_workspace,
                failure_reason_max_length=500,
            )
            if str(getattr(result.status, "value", result.status)) != "COMPLETED":
                raise SystemExit(f"0.6.1: {result}")
            answer = result.output["workspace"]["ref"]
        elif asked["do"] == "download":
            runtime.download_workspace(perago.WorkspaceInput(**given), spec, directory)
        else:
            context = execution.TaskExecutionContext(attempt=attempt, execution_id=uuid.uuid4().hex)
            runtime.stage_workspace(directory, perago.WorkspaceInput(**given), spec, context)
        if asked["do"] == "attempt":
            shutil.rmtree(directory, ignore_errors=True)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
