"""Runs one attempt as an executor does, with tracing as the environment says.

``python -m tests.observe.executor DIRECTORY TASK [TRACEPARENT]``; prints what was imported.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from pathlib import Path

from pydantic import BaseModel

from perago import WorkspaceSpec, task
from perago.app.engines import EngineFactory
from perago.attempt.lifecycle import run_attempt
from perago.attempt.services import AttemptServices
from perago.clock import SystemClock
from perago.history.event_log import AttemptJournal, EventLog
from perago.observe import tracing
from perago.programs.running import ProgramRunner
from perago.protocol.values import Attempt, Claim, WorkspaceInput
from perago.settings import load_settings
from perago.tasks.declaration import definition_of
from perago.testing.broker import ScriptedBroker
from perago.testing.lab import BRANCH, Lab
from perago.workspace.attempt_dirs import LocalAttemptDirs


class Params(BaseModel):
    colour: str = "canary-param"


class Result(BaseModel):
    rows: int


@task(name="good", owner_email="a@example.com", workspace=WorkspaceSpec(prefix="/data"))
def good(workspace: Path, params: Params) -> Result:
    if "opentelemetry" in sys.modules:
        from opentelemetry import trace  # noqa: PLC0415 - an author's own spans, if they trace

        with trace.get_tracer("author").start_as_current_span("author's own"):
            (workspace / "out.txt").write_text("x")
    (workspace / "out.txt").write_text("x")
    return Result(rows=1)


@task(name="bad", owner_email="a@example.com", workspace=WorkspaceSpec(prefix="/data"))
def bad(workspace: Path, params: Params) -> Result:
    raise ValueError(f"no with {os.environ['LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY']}")


def main(directory: Path, name: str, traceparent: str = "") -> None:
    lab = Lab(directory / "lab")
    head = lab.commit({"data/in.txt": "hello"})
    definition = definition_of({"good": good, "bad": bad}[name])
    workspace = WorkspaceInput(lab.repository, BRANCH, "commit", head.id)
    claim = Claim(
        Attempt(uuid.uuid4().hex, "task-1", 0, f"{name}_ref", name),
        {"workspace": workspace.as_json(), "params": {}},
        "execution-1",
        trace={"traceparent": traceparent} if traceparent else {},
    )
    clock = SystemClock()
    settings = load_settings(os.environ, directory)
    traces = tracing.start(settings)
    assert tracing.start(settings) is traces
    log = EventLog(directory / "events.sqlite")
    with traces.attempt(AttemptJournal(log, claim, clock), claim) as journal:
        attempt_dirs = LocalAttemptDirs(directory / "rooms", "lab", clock)
        services = AttemptServices(
            lab.store,
            ScriptedBroker(),
            attempt_dirs,
            clock,
            journal,
            engines=EngineFactory(),
            programs=ProgramRunner(),
        )
        outcome = run_attempt(claim, definition, services)
    log.close()
    lab.close()
    traces.flush(30)
    imported = sorted(
        name for name in sys.modules if name.startswith(("opentelemetry", "prometheus"))
    )
    print(json.dumps({"status": outcome.status, "imported": imported}))  # noqa: T201 - the answer


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
