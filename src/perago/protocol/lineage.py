"""Fence ``lineage``: a step may publish on its own earlier publications (K2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from perago.protocol.values import Attempt, Commit, WorkspaceInput

MAX_RANGE = 1024


class Broken(Enum):
    """Why the first-parent range H..A could not be read."""

    TOO_LONG = "advanced beyond supported publish range"
    NO_INPUT = "no longer contains workspace input ref"


@dataclass(frozen=True, slots=True)
class WorkspacePublicationPlan:
    """Where a lineage publication goes, decided before it is staged."""

    target_branch: str
    input_ref: str
    expected_head: str
    supersedes: str
    logical_task_key: str


def first_parent_range(input_ref: str, history: Iterable[Commit]) -> Sequence[Commit] | Broken:
    """Cut a first-parent history (head first) at A, excluding A; read at most 1024 commits."""
    found: list[Commit] = []
    for commit in history:
        if commit.id == input_ref:
            return tuple(found)
        if len(found) == MAX_RANGE:
            return Broken.TOO_LONG
        found.append(commit)
    return Broken.NO_INPUT


def refuse_range(commits: Sequence[Commit] | Broken, key: str, input_ref: str) -> str | None:
    """Return why the target is not ours to advance, or None."""
    if isinstance(commits, Broken):
        return f"target branch {commits.value} {input_ref}"
    for commit in commits:
        found = commit.metadata.get("perago.logical_task_key")
        if found != key:
            who = f"step {found}" if found else "a writer that left no logical task key"
            return f"target branch was advanced by {who} in commit {commit.id}"
    return None


def plan(workspace: WorkspaceInput, attempt: Attempt, head: str) -> WorkspacePublicationPlan:
    """Choose the base of an accepted publication: A, or the head this step made earlier."""
    return WorkspacePublicationPlan(
        target_branch=workspace.branch,
        input_ref=workspace.ref,
        expected_head=head,
        supersedes="" if head == workspace.ref else head,
        logical_task_key=attempt.logical_task_key,
    )
