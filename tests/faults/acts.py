"""What attempts under fault do; imported by workers.

``ACTS`` in the environment makes the task names of one rig its own; ``ACTS_COMMAND``, a list in
JSON, makes a program their body, with ``ACTS_SERVE`` one that serves. Waits between the deaths of
executors are shortened: here they die all the time, and that is not what is measured.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

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
from perago.protocol.program import Program
from perago.tasks.bodies import ProgramBody
from perago.tasks.declaration import ATTRIBUTE, definition_of
from perago.tasks.json_schemas import JsonSchema
from tests.faults import act_body
from tests.patience import scaled

restart.BACKOFF_SECONDS = (0.05,)  # type: ignore[assignment]
restart._LEAST_DEATHS = 1_000_000  # noqa: SLF001 - the breaker has tests of its own

TAG = os.environ["ACTS"]
OWNER = "tests@example.com"
CONTROLS = TaskControls(
    retry=RetryPolicy(count=5, delay_seconds=0),
    timeout=TimeoutPolicy(response_seconds=int(os.environ.get("ACTS_RESPONSE", "60"))),
    publish_budget=PublishBudget(
        observed_merge_p99_seconds=scaled(1),
        safety_margin_seconds=scaled(2),
        lakefs_merge_timeout_seconds=float(os.environ.get("ACTS_MERGE", str(scaled(6)))),
        conductor_completion_timeout_seconds=float(os.environ.get("ACTS_COMPLETION", "10")),
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
    return Done(run=act_body.work(workspace, act, give_up))


def give_up() -> None:
    """Fail when the attempt is lost."""
    if perago.cancelled():
        raise perago.TaskFailed("nobody wants this any more")


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


def by_program(function: Callable[..., Any], program: Program) -> None:
    """Have a task done by a program, with everything else as it is declared here."""
    given = definition_of(function)
    body = ProgramBody(program, Path(__file__).with_suffix(".toml"), given.name)
    any_object = JsonSchema("any object", {"type": "object"})
    made = replace(given, body=body, params=any_object, result=any_object)
    setattr(function, ATTRIBUTE, made)


if command := json.loads(os.environ.get("ACTS_COMMAND", "[]")):
    for function in (head, lineage, hard, look):
        by_program(function, Program(tuple(command), serve="ACTS_SERVE" in os.environ))
