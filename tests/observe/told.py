"""What a supervisor would tell its watchers: the events of whole attempts, made up or real."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from perago.protocol.event_format import read
from perago.protocol.events import Event
from perago.protocol.outcome import classify
from perago.protocol.values import Attempt, Claim, Phase
from perago.settings import Settings, load_settings

CANARIES = {
    "LAKECTL_SERVER_ENDPOINT_URL": "http://127.0.0.1:1",
    "LAKECTL_CREDENTIALS_ACCESS_KEY_ID": "AKIACANARYKEYID",
    "LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY": "canary/lakefs+secret=1",
    "CONDUCTOR_SERVER_URL": "http://127.0.0.1:1/api",
    "CONDUCTOR_AUTH_KEY": "canary-conductor-key",
    "CONDUCTOR_AUTH_SECRET": "canary-conductor-secret",
}
SECRETS = [value for name, value in CANARIES.items() if not name.endswith("URL")]
OUTPUT = {"workspace": {"ref": "c1"}, "result": {"card": "canary-result"}}


class Listener(Protocol):
    def event(self, claim: Claim, worker_id: str, event: Event) -> None: ...


def event(name: str, /, **facts: object) -> Event:
    """Make an event as one is read from a log or a message."""
    return read(name, facts)


def settings(directory: Path, **variables: str) -> Settings:
    environ = {"PERAGO_LOG_ROOT": str(directory / "logs"), "PERAGO_INSTANCE_ID": "one"}
    return load_settings({**CANARIES, **environ, **variables}, directory)


def claim(task: str = "double", retry: int = 0, trace: Mapping[str, str] | None = None) -> Claim:
    attempt = Attempt(uuid.uuid4().hex, uuid.uuid4().hex, retry, f"{task}_ref", task)
    return Claim(
        attempt, {"params": {"password": "canary-param"}}, uuid.uuid4().hex, 0, trace or {}
    )


def completed(
    watcher: Listener, claimed: Claim, worker_id: str = "w-0001", *, report: bool = True
) -> None:
    """Tell a workspace attempt that went well."""
    tell = _teller(watcher, claimed, worker_id)
    tell("claimed", task=claimed.attempt.task_def_name, workspace={"ref": "a0"})
    for phase in ("input", "attempt directory"):
        _phase(tell, phase)
    tell("before download")
    tell("downloaded", files=3, bytes=3000)
    tell("after download", seconds=0.2)
    tell("guard", phase="pre guardrail", guard="require_file", violation=None)
    _phase(tell, "body", 0.5)
    tell("metric", kind="histogram", name="rows", value=7.0, labels={"kind": "new"})
    tell("metric", kind="gauge", name="depth", value=3.0, labels={})
    tell("changed", added=["x", "y"], changed=[], removed=["z"])
    tell("before stage")
    tell("branch created", branch="perago-staging-1", base="a0")
    tell("uploaded", files=2, bytes=2000, deleted=1)
    tell("after stage", seconds=0.3)
    tell("decision", kind="merge", repository="r", branch="main", head="a0")
    tell("published", ref="c1", fence="head")
    tell("decided", status="COMPLETED", reason="", output=OUTPUT)
    if report:
        _phase(tell, "report")


def failed(
    watcher: Listener,
    claimed: Claim,
    phase: Phase = Phase.BODY,
    error: Exception | None = None,
    worker_id: str = "w-0001",
) -> None:
    """Tell an attempt that failed."""
    outcome = classify(phase, error or ValueError("no"), reason_limit=500, hide=str)
    tell = _teller(watcher, claimed, worker_id)
    tell("claimed", task=claimed.attempt.task_def_name, workspace=None)
    tell(f"before {phase}")
    tell("traceback", text=f"Traceback:\n  File x\nValueError: {' '.join(SECRETS)}")
    tell("decided", **outcome.event.facts)
    tell("warning", text="failed to clean staging workspace", why=f"no {SECRETS[1]}")
    _phase(tell, "report")


def _teller(watcher: Listener, claimed: Claim, worker_id: str) -> _Tell:
    def tell(name: str, /, **facts: object) -> None:
        watcher.event(claimed, worker_id, event(name, **facts))

    return tell


class _Tell(Protocol):
    def __call__(self, name: str, /, **facts: object) -> None: ...


def _phase(tell: _Tell, phase: str, seconds: float = 0.01) -> None:
    tell(f"before {phase}")
    tell(f"after {phase}", seconds=seconds)
