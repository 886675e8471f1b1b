"""A workflow as whoever watches it sees it, on Conductor or here. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from perago.protocol.events import Event as AttemptEvent
from perago.protocol.events import PublicationDecided, PublicationVerified
from perago.workflow.events import Event

OVER = frozenset({"COMPLETED", "FAILED", "TIMED_OUT", "TERMINATED"})
_WAITING = "SCHEDULED"
_RUNNING = "IN_PROGRESS"


@dataclass(frozen=True, slots=True)
class WorkflowStep:
    """One attempt of one step; ``kind`` is that of Conductor's workflow language."""

    task_id: str
    name: str
    retry: int
    status: str
    kind: str = "SIMPLE"
    reason: str = ""
    started_at: float | None = None
    ended_at: float | None = None
    wait_seconds: float = 0.0
    execution_id: str = ""
    input: Mapping[str, Any] = field(default_factory=dict)
    output: Mapping[str, Any] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        """Return whether it has ended."""
        return self.status not in {_WAITING, _RUNNING}

    @property
    def seconds(self) -> float:
        """Return how long it took; 0 where that is not known."""
        if self.started_at is None or self.ended_at is None:
            return 0.0
        return max(0.0, self.ended_at - self.started_at)

    def as_json(self) -> dict[str, object]:
        """Return it as plain values."""
        return {
            "task_id": self.task_id,
            "step": self.name,
            "retry_count": self.retry,
            "status": self.status,
            "reason": self.reason,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
        }


@dataclass(frozen=True, slots=True)
class WorkflowExecution:
    """One workflow: what it was given, how far it is."""

    id: str
    workflow: str
    version: int
    status: str
    reason: str
    input: Mapping[str, Any]
    output: Mapping[str, Any]
    steps: tuple[WorkflowStep, ...] = ()
    correlation_id: str = ""

    @property
    def over(self) -> bool:
        """Return whether it has ended."""
        return self.status in OVER

    def as_json(self) -> dict[str, object]:
        """Return it as plain values."""
        return {
            "id": self.id,
            "workflow": self.workflow,
            "version": self.version,
            "status": self.status,
            "reason": self.reason,
            "output": dict(self.output),
            "steps": [step.as_json() for step in self.steps],
        }


Told = Callable[["WorkflowStep"], Iterable[AttemptEvent]]
"""Says what an attempt did to its branch, as events of its journal."""


def news(before: WorkflowExecution | None, now: WorkflowExecution, told: Told) -> Iterator[Event]:
    """Return what happened between two looks, in the words of a local runner."""
    known = {step.task_id: step for step in before.steps} if before else {}
    for step in now.steps:
        old = known.get(step.task_id)
        if old is None:
            name = "task_retry" if step.retry else "task_scheduled"
            yield _about(name, step, in_seconds=step.wait_seconds)
        if step.status != _WAITING and (old is None or old.status == _WAITING):
            yield _about("task_claimed", step)
            yield _about("task_running", step)
        if step.over and (old is None or not old.over):
            for event in told(step):
                yield _about("message", step, message={"event": event.title, **event.facts})
            facts = {"status": step.status, "reason": step.reason, "seconds": step.seconds}
            yield _about("task_finished", step, **facts)


def published_by(step: WorkflowStep) -> Iterator[AttemptEvent]:
    """Read from the two ends of an attempt what it did to the branch."""
    read, left = _ref(step.input), _ref(step.output)
    if left is None:
        return
    if left == read:
        yield PublicationDecided(kind="keep")
        return
    yield PublicationDecided(kind="merge")
    yield PublicationVerified(ref=left)


def renewed(given: Mapping[str, Any], heads: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    """Return a workflow's input with its workspaces at these heads; all else stays."""
    found = dict(given)
    for key, value in given.items():
        place = place_of(value)
        if place is not None and place in heads:
            found[key] = {**value, "ref_type": "commit", "ref": heads[place]}
    return found


def place_of(value: object) -> tuple[str, str] | None:
    """Return repository and branch, where a value of a workflow's input is a workspace."""
    if not isinstance(value, Mapping) or "ref" not in value:
        return None
    repository, branch = value.get("repository"), value.get("branch")
    if not isinstance(repository, str) or not isinstance(branch, str):
        return None
    return repository, branch


def _ref(values: Mapping[str, Any]) -> str | None:
    workspace = values.get("workspace")
    ref = workspace.get("ref") if isinstance(workspace, Mapping) else None
    return ref if isinstance(ref, str) else None


def _about(name: str, step: WorkflowStep, **facts: object) -> Event:
    return {
        "event": name,
        "kind": step.kind,
        "task_id": step.task_id,
        "reference_task_name": step.name,
        "retry_count": step.retry,
        **facts,
    }
