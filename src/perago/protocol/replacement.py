"""Whether a publication is abandoned, so that an attempt may replace it (P2a).

A child of A on the target looks the same whether its task died before its completion was accepted
or succeeded long ago. The broker alone knows (G1). So before a publication leaves the branch, its
commit says which task made it, and the broker says how that task stands. Metadata can only forbid
here: a commit that names no task is judged by its place in the history alone (S5).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from perago.errors import RESTART
from perago.protocol.values import Attempt, Commit, Status

KIND = "perago.kind"
"""Marks a commit that Perago made outside of an attempt: an import, or the action of a fence."""
UNKNOWN_TASK = None
"""The answer of a broker that does not know a task, or no longer."""

Standings = Mapping[str, str | None]
"""By task id: the status the broker gives, or ``UNKNOWN_TASK``."""

_WITHOUT_SUCCESS = frozenset(
    {
        Status.FAILED,
        Status.FAILED_WITH_TERMINAL_ERROR,
        Status.TIMED_OUT,
        Status.CANCELED,
        Status.SKIPPED,
        Status.COMPLETED_WITH_ERRORS,
    }
)
_OPEN = frozenset({Status.SCHEDULED, Status.IN_PROGRESS})
_NOT_ASKED = "not asked for"


@dataclass(frozen=True, slots=True)
class Objection:
    """Why a publication must stay, and what to do instead."""

    reason: str
    remedy: str


def tasks_to_ask(commits: Iterable[Commit]) -> tuple[str, ...]:
    """Return the ids of the tasks that published these commits, each once."""
    found = (commit.metadata.get("perago.task_id") for commit in commits)
    return tuple(dict.fromkeys(task for task in found if task))


def object_to_replacing(
    commits: Iterable[Commit], attempt: Attempt, standings: Standings
) -> Objection | None:
    """Return why one of these commits must not leave the branch for this attempt, or None."""
    found = (_object_to(commit, attempt, standings) for commit in commits)
    return next((objection for objection in found if objection), None)


def _object_to(commit: Commit, attempt: Attempt, standings: Standings) -> Objection | None:
    said = commit.metadata
    if kind := said.get(KIND):
        return Objection(f"head {commit.id} is not the work of an attempt ({kind})", RESTART)
    task = said.get("perago.task_id")
    if not task:
        return None
    problem = _still_wanted(said, attempt, standings.get(task, _NOT_ASKED))
    if problem is None:
        return None
    step, mine = _step(said), _same_workflow(said, attempt)
    who = f"task {task} of step {step!r}" + ("" if mine else " in another workflow")
    return Objection(
        f"head {commit.id} was published by {who}, {problem}",
        _read_output_of(step) if mine else RESTART,
    )


def _still_wanted(said: Mapping[str, str], attempt: Attempt, status: str | None) -> str | None:
    """Return what the broker's answer about a task forbids, or None when its work is abandoned."""
    if status is UNKNOWN_TASK:
        return None if _same_workflow(said, attempt) else "which the workflow engine does not know"
    if status in _WITHOUT_SUCCESS:
        return None
    if status in _OPEN:
        same_step = said.get("perago.logical_task_key") == attempt.logical_task_key
        return None if same_step else f"which is still {status}"
    if status == Status.COMPLETED:
        return "which is COMPLETED, so it is not an abandoned publication"
    return f"whose status is {status!r}"


def _same_workflow(said: Mapping[str, str], attempt: Attempt) -> bool:
    return said.get("perago.workflow_instance_id") == attempt.workflow_instance_id


def _step(said: Mapping[str, str]) -> str:
    """Name the step as the workflow does: the logical key without workflow and iteration."""
    key = said.get("perago.logical_task_key", "")
    workflow = said.get("perago.workflow_instance_id", "")
    return key.removeprefix(f"{workflow}:").rpartition(":")[0] or said.get("perago.task", "")


def _read_output_of(step: str) -> str:
    return f'let this step read that step\'s output: "workspace": "${{{step}.output.workspace}}"'
