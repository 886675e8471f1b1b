"""Tasks of a careless author: they find the worker's keys and say them wherever one can."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pydantic import BaseModel

from perago import MetricRecorder, RetryPolicy, TaskControls, WorkspaceSpec, task
from tests import canary

TAG = f"_{os.environ['DEEDS']}" if "DEEDS" in os.environ else ""
"""So that workers of several tests can share a server."""


class Params(BaseModel):
    how: str = "result"


class Found(BaseModel):
    text: str
    keys: int
    inherited: list[str] = []
    deep: dict[str, list[str]] = {}


def everything() -> str:
    found = canary.reach()
    assert found, "the keys are not in reach: nothing is tried"
    return " ".join(map(canary.chatter, found))


@task(
    name=f"leaky{TAG}",
    owner_email="a@example.com",
    workspace=WorkspaceSpec(prefix="/data"),
    controls=TaskControls(retry=RetryPolicy(count=0)),
)
def leaky(workspace: Path, params: Params, metrics: MetricRecorder) -> Found:
    said = everything()
    for stream in (sys.stdout, sys.stderr):
        stream.write(f"{said}\n")
    metrics.gauge("speed", 1.0, labels={"key": canary.reach()[0]})
    (workspace / "out.txt").write_text("done")
    if params.how == "error":
        raise ValueError(canary.reach()[-1]) from KeyError(said)
    key = canary.reach()[0]
    return Found(text=said, keys=len(canary.reach()), deep={key: [f"a {key} b"]})


@task(name=f"curious{TAG}", owner_email="a@example.com")
def curious(params: Params) -> Found:
    """Look where keys are found without looking into memory."""
    child = "import os; print(sorted(os.environ))"
    places = {
        "os.environ": sorted(os.environ),
        "a child": [subprocess.check_output([sys.executable, "-c", child], text=True)],
    }
    if params.how == "process":
        block = Path("/proc/self/environ").read_bytes().decode(errors="replace")
        places["/proc/self/environ"] = [pair.partition("=")[0] for pair in block.split("\0")]
    held = ("LAKECTL_CREDENTIALS", "CONDUCTOR_AUTH", "PERAGO_LEDGER", "OTLP_HEADERS")
    found = [
        f"{name} in {place}"
        for place, names in places.items()
        for name in held
        if any(name in each for each in names)
    ]
    return Found(text="looked", keys=0, inherited=found)
