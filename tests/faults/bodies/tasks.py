"""The tasks whose bodies are hostile; imported by the executors of a run or of a worker.

The first run of a case does the deed, every later one behaves.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from perago import MetricRecorder, RetryPolicy, TaskControls, TimeoutPolicy, WorkspaceSpec, task
from perago.protocol import restart
from tests.faults.bodies import canary
from tests.faults.bodies.all_of_them import BODIES
from tests.faults.bodies.body import Scene, work

restart.BACKOFF_SECONDS = (0.05,)  # type: ignore[assignment]
restart._LEAST_DEATHS = 1_000_000  # noqa: SLF001 - the breaker has tests of its own

TAG = os.environ.get("ACTS", "local")
OWNER = "tests@example.com"
CONTROLS = TaskControls(
    retry=RetryPolicy(count=2, delay_seconds=0),
    timeout=TimeoutPolicy(response_seconds=60, policy="RETRY"),
)
TIMED = CONTROLS.model_copy(
    update={"timeout": TimeoutPolicy(response_seconds=8, seconds=8, policy="RETRY")}
)


class Act(BaseModel):
    """Which body, and where its scratch directory is; without a body it only works."""

    scratch: str
    body: str = ""
    data: Any = None


class Said(BaseModel):
    run: int
    data: Any = None


def act(workspace: Path, params: Act, metrics: MetricRecorder, below: str = "") -> Said:
    scratch = Path(params.scratch)
    if not params.body:
        (workspace / "well.txt").write_bytes(b"well\n")
        with suppress(AttributeError, OSError, ValueError):  # An earlier body may have spoiled it.
            sys.stdout.write("well\n" * 1000)
            sys.stdout.flush()
        return Said(run=-1)
    with (scratch / "runs").open("a") as runs:
        run = runs.tell()
        runs.write("x")
    work(workspace / below)
    if run > 0:
        return Said(run=run)
    scene = Scene(workspace, scratch, metrics, params.data)
    _plant(scene)
    said = BODIES[params.body].deed(scene)
    return said if isinstance(said, Said) else Said(run=run, data=said)


def _plant(scene: Scene) -> None:
    """Put a canary beside the attempt directory, now that the root is there, and look at all."""
    beside = scene.attempt_dir.parent / "neighbour"
    if not beside.exists():
        canary.plant(beside)
    places = [beside, scene.outside, scene.ground / "beside"]
    found = {str(place): canary.snapshot(place) for place in places}
    (scene.scratch / "before.json").write_text(json.dumps(found))


@task(
    name=f"write_{TAG}",
    owner_email=OWNER,
    workspace=WorkspaceSpec(prefix="data", exclude=["skipped/**"]),
    controls=CONTROLS,
)
def write(workspace: Path, params: Act, metrics: MetricRecorder) -> Said:
    return act(workspace, params, metrics)


@task(
    name=f"timed_{TAG}",
    owner_email=OWNER,
    workspace=WorkspaceSpec(prefix="data", exclude=["skipped/**"]),
    controls=TIMED,
)
def timed(workspace: Path, params: Act, metrics: MetricRecorder) -> Said:
    return act(workspace, params, metrics)


@task(
    name=f"look_{TAG}",
    owner_email=OWNER,
    workspace=WorkspaceSpec(prefix="data", exclude=["skipped/**"], read_only=True),
    controls=CONTROLS,
)
def look(workspace: Path, params: Act, metrics: MetricRecorder) -> Said:
    return act(workspace, params, metrics)


@task(
    name=f"whole_{TAG}",
    owner_email=OWNER,
    workspace=WorkspaceSpec(prefix="/"),
    controls=CONTROLS,
)
def whole(workspace: Path, params: Act, metrics: MetricRecorder) -> Said:
    """Work on the whole repository; the ordinary work is that of the others."""
    return act(workspace, params, metrics, "data")
