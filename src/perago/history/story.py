"""One execution, told from its events: phases with times, guards, change, decision, end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from perago.history.event_log import Event
from perago.protocol.values import Attempt


@dataclass(frozen=True, slots=True)
class PhaseTime:
    """One phase of an execution; ``seconds`` is None when it never ended."""

    name: str
    began: float
    seconds: float | None


@dataclass(slots=True)
class AttemptHistory:
    """What the event log knows of one execution."""

    execution_id: str
    attempt: Attempt
    started_at: float
    workspace: Mapping[str, object] | None = None
    store: str | None = None
    phases: list[PhaseTime] = field(default_factory=list)
    guards: list[Mapping[str, Any]] = field(default_factory=list)
    change: Mapping[str, Any] | None = None
    decision: Mapping[str, Any] | None = None
    published: Mapping[str, Any] | None = None
    adopted: Mapping[str, Any] | None = None
    metrics: list[Mapping[str, Any]] = field(default_factory=list)
    warnings: list[Mapping[str, Any]] = field(default_factory=list)
    outcome: Mapping[str, Any] | None = None
    traceback: str | None = None
    lost_completion: bool = False

    @property
    def state(self) -> str:
        """Say how it ended; an execution without an end died on the way."""
        if self.outcome is None:
            if not self.phases:
                return "died at the start"
            last = self.phases[-1]
            return f"died {'in' if last.seconds is None else 'after'} {last.name}"
        return str(self.outcome["status"]) + (" (not accepted)" if self.lost_completion else "")

    def as_json(self) -> dict[str, object]:
        """Return all of it as plain values."""
        return {
            "execution_id": self.execution_id,
            "workflow_instance_id": self.attempt.workflow_instance_id,
            "task_id": self.attempt.task_id,
            "retry_count": self.attempt.retry_count,
            "step": self.attempt.reference_task_name,
            "task": self.attempt.task_def_name,
            "state": self.state,
            "started_at": self.started_at,
            "store": self.store,
            "workspace": self.workspace,
            "phases": [{"name": phase.name, "seconds": phase.seconds} for phase in self.phases],
            "guards": self.guards,
            "change": self.change,
            "decision": self.decision,
            "published": self.published,
            "adopted": self.adopted,
            "metrics": self.metrics,
            "warnings": self.warnings,
            "outcome": self.outcome,
            "traceback": self.traceback,
        }


STARTING_SPARK: Final = "starting Spark"
"""Told as a phase of its own, before the one in which Spark was first asked for."""
_ONCE = {
    "changed": "change",
    "decision": "decision",
    "published": "published",
    "adopted": "adopted",
    "decided": "outcome",
}
_OFTEN = {"guard": "guards", "metric": "metrics", "warning": "warnings"}


def story(events: Sequence[Event]) -> AttemptHistory:
    """Tell one execution's events, given in order."""
    first = events[0]
    told = AttemptHistory(first.execution_id, first.attempt, first.at)
    for event in events:
        _tell(told, event)
    return told


def _tell(told: AttemptHistory, event: Event) -> None:
    facts: Mapping[str, Any] = event.facts
    name = event.name
    if name.startswith("before "):
        told.phases.append(PhaseTime(name.removeprefix("before "), event.at, None))
    elif name.startswith("after ") and told.phases:
        open_phase = told.phases[-1]
        told.phases[-1] = PhaseTime(open_phase.name, open_phase.began, facts.get("seconds"))
    elif name == "spark started":
        _insert(told, PhaseTime(STARTING_SPARK, event.at, facts.get("seconds")))
    elif name == "claimed":
        told.workspace = facts.get("workspace")
        told.store = facts.get("store") if told.workspace else None
    elif name == "traceback":
        told.traceback = facts.get("text")
    elif name == "lost completion":
        told.lost_completion = True
    elif name in _ONCE:
        setattr(told, _ONCE[name], facts)
    elif name in _OFTEN:
        getattr(told, _OFTEN[name]).append(facts)


def _insert(told: AttemptHistory, found: PhaseTime) -> None:
    """Put it before the phase that is still open: that one's seconds do not count it."""
    told.phases.insert(max(0, len(told.phases) - 1), found)
