"""Which staging branches are no longer needed (W5, V7): their names, and what the broker says."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perago.protocol.names import STAGING
from perago.protocol.sweep import SweepDecision

_NAME = re.compile(
    re.escape(STAGING) + r".*-task-id-(?P<task>.+)-retry-\d+-exec-(?P<execution>[A-Za-z0-9_-]+)"
)


@dataclass(frozen=True, slots=True)
class StagingName:
    """The execution that a staging branch belongs to, as its name tells."""

    task_id: str
    execution_id: str


@dataclass(frozen=True, slots=True)
class FoundStaging:
    """A staging branch as the sweep sees it; ``status`` is None when the broker has no such task.

    ``over``: nothing the task's executors do can count any more. ``age_seconds`` is None when
    nothing tells how old it is.
    """

    status: str | None
    over: bool
    age_seconds: float | None = None


def staging_name(branch: str) -> StagingName | None:
    """Read a staging branch's name; None when it is none."""
    found = _NAME.fullmatch(branch)
    return StagingName(found["task"], found["execution"]) if found else None


def judge_staging(found: FoundStaging, age_seconds: float) -> SweepDecision:
    """Remove what an ended task left; a task that the broker does not know may be another's."""
    if found.status is not None:
        if found.over:
            return SweepDecision(remove=True, why=f"its task is {found.status}")
        return SweepDecision(remove=False, why=f"its task is {found.status}")
    if found.age_seconds is None:
        if age_seconds <= 0:
            return SweepDecision(remove=True, why="Conductor does not know its task")
        return SweepDecision(
            remove=False, why="Conductor does not know its task, and its age is not known"
        )
    if found.age_seconds < age_seconds:
        return SweepDecision(remove=False, why="Conductor does not know its task, and it is young")
    return SweepDecision(remove=True, why="Conductor does not know its task, and it is old")
