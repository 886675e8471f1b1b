"""What attempts under fault do; imported by workers.

``ACTS`` in the environment makes the task names of one rig its own. Waits between the deaths of
executors are shortened: here they die all the time, and that is not what is measured.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path

from pydantic import BaseModel

import perago
from perago import (
    PublishBudget,
    RetryPolicy,
    TaskControls,
    TimeoutPolicy,
    WorkspaceSpec,
    require_file,
    task,
)
from perago.protocol import restart
from tests.patience import scaled

restart.BACKOFF_SECONDS = (0.05,)  # type: ignore[assignment]
restart._LEAST_DEATHS = 1_000_000  # noqa: SLF001 - the breaker has tests of its own

TAG = os.environ["ACTS"]
OWNER = "tests@example.com"
PARTS = 3
CONTROLS = TaskControls(
    retry=RetryPolicy(count=5, delay_seconds=0),
    timeout=TimeoutPolicy(response_seconds=int(os.environ.get("ACTS_RESPONSE", "60"))),
    publish_budget=PublishBudget(
        observed_merge_p99_seconds=scaled(1),
        safety_margin_seconds=scaled(2),
        lakefs_merge_timeout_seconds=float(os.environ.get("ACTS_MERGE", str(scaled(6)))),
        conductor_completion_timeout_seconds=10,
        worker_shutdown_grace_seconds=10,
        heartbeat_interval_seconds=10,
    ),
)
IN = [require_file("in.bin")]


class Act(BaseModel):
    """What to do; ``path`` counts how often it was begun, over all attempts."""

    path: str
    mode: str = "change"
    die: int = -1
    wait: bool = False
    apart: bool = False
    """Write files that no other attempt writes."""
    do: str = ""
    record: str = ""
    """The file that is told of harm before it is done."""


class Done(BaseModel):
    """The run that this was: its files say so too."""

    run: int


def work(workspace: Path, act: Act) -> Done:
    run = begin(act)
    # Whoever dies before the end leaves a link to what is not the attempt's (V6).
    way_out = workspace / "way-out"
    way_out.symlink_to(Path(act.path).parent / "outside")
    changes = act.mode == "change" or (act.mode == "once" and run == 0)
    for part in range(PARTS if changes else 0):
        if act.die == run and part == 1:
            die(act)
        name = f"part{part}-{run}.txt" if act.apart else f"part{part}.txt"
        (workspace / name).write_text(f"{run}:{part}")
    if changes:
        (workspace / "old.txt").unlink(missing_ok=True)
    elif act.die == run:
        die(act)
    if act.wait:
        _wait(act)
    way_out.unlink()
    if run == 0 and act.do:
        told(act, "do")
        DEEDS[act.do](workspace)
    return Done(run=run)


def told(act: Act, harm: str) -> None:
    with Path(act.record).open("a") as record:
        record.write(f"{Path(act.path).name}:{harm}\n")


def die(act: Act) -> None:
    told(act, "die")
    os.kill(os.getpid(), signal.SIGKILL)


def begin(act: Act) -> int:
    with Path(f"{act.path}.runs").open("a") as runs:
        run = runs.tell()
        runs.write("x")
    return run


def _wait(act: Act) -> None:
    Path(f"{act.path}.begun").write_text(str(os.getpid()))
    while not Path(f"{act.path}.go").exists():
        if perago.cancelled():
            Path(f"{act.path}.cancelled").touch()
            raise perago.TaskFailed("nobody wants this any more")
        time.sleep(0.02)  # between two looks


def _fill(workspace: Path) -> None:
    """Write more than there is room for."""
    with (workspace / "huge.bin").open("wb") as file:
        for _ in range(64):
            file.write(bytes(1 << 20))


def _handles(workspace: Path) -> None:
    """Open files until there are no handles left."""
    kept = []
    while True:
        kept.append((workspace / "in.bin").open("rb"))


def _vanish(workspace: Path) -> None:
    """Take the attempt directory away, the marker included."""
    shutil.rmtree(workspace.parent)


def _memory(workspace: Path) -> None:
    kept = []
    while True:
        kept.append(bytearray(os.urandom(1 << 20)) * 8)
        time.sleep(0.005)  # the supervisor has to see it grow


DEEDS = {
    "fill": _fill,
    "handles": _handles,
    "vanish": _vanish,
    "memory": _memory,
}


@task(
    name=f"head_{TAG}",
    owner_email=OWNER,
    workspace=WorkspaceSpec(prefix="data", pre=IN, post=IN),
    controls=CONTROLS,
)
def head(workspace: Path, params: Act) -> Done:
    return work(workspace, params)


@task(
    name=f"lineage_{TAG}",
    owner_email=OWNER,
    workspace=WorkspaceSpec(prefix="data", fence="lineage", pre=IN, post=IN),
    controls=CONTROLS,
)
def lineage(workspace: Path, params: Act) -> Done:
    return work(workspace, params)


@task(
    name=f"hard_{TAG}",
    owner_email=OWNER,
    workspace=WorkspaceSpec(prefix="data", fence="hard", pre=IN, post=IN),
    controls=CONTROLS,
)
def hard(workspace: Path, params: Act) -> Done:
    return work(workspace, params)


@task(
    name=f"look_{TAG}",
    owner_email=OWNER,
    workspace=WorkspaceSpec(prefix="data", read_only=True, pre=IN, post=IN),
    controls=CONTROLS,
)
def look(workspace: Path, params: Act) -> Done:
    return work(workspace, params)
