"""What the decider asks for. Each action names the record it was decided on.

The state carries out all actions of one decision or none: if any record has moved on meanwhile,
the decision is void and is made again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from perago.workflow.records import RunRecord, RunStatus, TaskRecord


@dataclass(frozen=True, slots=True)
class Schedule:
    """Add an attempt that an executor may claim from ``start_at`` on."""

    task: TaskRecord
    retry_of: TaskRecord | None = None


@dataclass(frozen=True, slots=True)
class AddSystemTask:
    """Add a task that the broker runs itself: over already, or open until a later decision."""

    task: TaskRecord


@dataclass(frozen=True, slots=True)
class UpdateSystemTask:
    """Move a task that the broker runs itself on to what it is now."""

    task: TaskRecord
    now: TaskRecord


@dataclass(frozen=True, slots=True)
class StartChild:
    """Begin the run of a SUB_WORKFLOW."""

    child: RunRecord


@dataclass(frozen=True, slots=True)
class ReopenChild:
    """Let the run of a SUB_WORKFLOW go on after its end, because the run it belongs to does."""

    child: RunRecord


@dataclass(frozen=True, slots=True)
class TimeOut:
    """End an open attempt as TIMED_OUT."""

    task: TaskRecord
    reason: str


@dataclass(frozen=True, slots=True)
class CancelTask:
    """End an open attempt as CANCELED, because the run ends."""

    task: TaskRecord


@dataclass(frozen=True, slots=True)
class ContinueWithErrors:
    """Let the run go on behind an optional task that failed for good."""

    task: TaskRecord


@dataclass(frozen=True, slots=True)
class EndRun:
    """End the run."""

    status: RunStatus
    output: Mapping[str, object] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Alert:
    """Tell people of a timeout that changes nothing (ALERT_ONLY)."""

    subject: str
    reason: str


Action = (
    Schedule
    | AddSystemTask
    | UpdateSystemTask
    | StartChild
    | ReopenChild
    | TimeOut
    | CancelTask
    | ContinueWithErrors
    | EndRun
    | Alert
)
