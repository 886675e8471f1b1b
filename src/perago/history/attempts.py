"""What the event log knows of one execution: phases with times, guards, change, decision, end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perago.history.event_log import Recorded
from perago.protocol.attempt_state import AttemptState
from perago.protocol.events import Event, GuardAsked, MetricRecorded, Warned
from perago.protocol.values import Attempt


@dataclass(slots=True)
class AttemptHistory:
    """One execution: how it stands, and all that was said on the way."""

    execution_id: str
    attempt: Attempt
    started_at: float
    last_at: float
    state: AttemptState = field(default_factory=AttemptState)
    guards: list[GuardAsked] = field(default_factory=list)
    metrics: list[MetricRecorded] = field(default_factory=list)
    warnings: list[Warned] = field(default_factory=list)

    @property
    def workspace(self) -> Mapping[str, Any]:
        """Where it reads; empty for a task without a workspace."""
        return (self.state.claimed.workspace if self.state.claimed else None) or {}

    @property
    def store(self) -> str | None:
        """The kind of store that its workspace is in."""
        return self.state.claimed.store if self.state.claimed and self.workspace else None

    @property
    def ending(self) -> str:
        """How it ended; an execution without an end died on the way."""
        state = self.state
        if state.outcome is not None:
            return state.outcome.status + (" (not accepted)" if state.completion_lost else "")
        if not state.phases:
            return "died at the start"
        last = state.phases[-1]
        return f"died {'in' if last.seconds is None else 'after'} {last.name}"

    def as_json(self) -> dict[str, object]:
        """Return all of it as plain values."""
        state = self.state
        return {
            "execution_id": self.execution_id,
            "workflow_instance_id": self.attempt.workflow_instance_id,
            "task_id": self.attempt.task_id,
            "retry_count": self.attempt.retry_count,
            "step": self.attempt.reference_task_name,
            "task": self.attempt.task_def_name,
            "state": self.ending,
            "started_at": self.started_at,
            "store": self.store,
            "workspace": self.workspace or None,
            "phases": [{"name": phase.name, "seconds": phase.seconds} for phase in state.phases],
            "guards": [guard.facts for guard in self.guards],
            "change": _facts(state.changed),
            "decision": _facts(state.decision),
            "published": _facts(state.published),
            "adopted": _facts(state.adopted),
            "metrics": [metric.facts for metric in self.metrics],
            "warnings": [warning.facts for warning in self.warnings],
            "outcome": _facts(state.outcome),
            "traceback": state.traceback.text if state.traceback else None,
        }


def attempt_history(recorded: Sequence[Recorded]) -> AttemptHistory:
    """Fold the events of one execution, given in order."""
    first = recorded[0]
    found = AttemptHistory(first.execution_id, first.attempt, first.at, recorded[-1].at)
    for one in recorded:
        found.state = found.state.after(one.event, one.at)
        match one.event:
            case GuardAsked():
                found.guards.append(one.event)
            case MetricRecorded():
                found.metrics.append(one.event)
            case Warned():
                found.warnings.append(one.event)
    return found


def _facts(event: Event | None) -> dict[str, Any] | None:
    return None if event is None else event.facts
