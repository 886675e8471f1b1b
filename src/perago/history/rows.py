"""Executions and publications as flat rows: what reports and queries are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from perago.history.attempts import attempt_history
from perago.history.event_log import Recorded
from perago.protocol.adoption import ADOPT
from perago.protocol.attempt_state import AttemptState
from perago.protocol.values import Commit, Phase

_AFTER_BODY = frozenset(phase.value for phase in list(Phase)[list(Phase).index(Phase.BODY) + 1 :])
_ATTEMPT_FENCES = frozenset({Phase.FENCE_ONE.value, Phase.FENCE_TWO.value})


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One execution of an attempt, from the event log."""

    execution_id: str
    workflow_id: str
    attempt_id: str
    step: str
    task: str
    retry: int
    store: str | None
    repository: str | None
    branch: str | None
    input_ref: str | None
    started_at: float
    seconds: float
    status: str
    failed_in: str | None
    reason: str | None
    refused: bool
    kind: str | None
    head: str | None
    ref: str | None
    fence: str | None
    decided_at: float | None
    publish_seconds: float | None
    after_body_seconds: float | None
    files_read: int | None
    bytes_read: int | None
    files_written: int | None
    bytes_written: int | None
    added: int | None
    changed: int | None
    removed: int | None
    phases: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PublicationRow:
    """One move of a branch, or the decision to leave it; ``visible`` is None when not looked."""

    store: str | None
    repository: str
    branch: str
    ref: str
    parent: str | None
    kind: str
    replaced: str | None
    fence: str | None
    task: str
    step: str
    workflow_id: str
    attempt_id: str
    execution_id: str
    retry: int
    published_at: float
    publish_seconds: float | None
    visible: bool | None


def attempt_row(recorded: Sequence[Recorded]) -> AttemptRow:
    """Flatten the events of one execution, given in order."""
    history = attempt_history(recorded)
    attempt, state, workspace = history.attempt, history.state, history.workspace
    kind = state.decision.kind if state.decision else None
    down, up = state.downloaded, state.uploaded
    added, changed, removed = state.changed.counts if state.changed else (None, None, None)
    phases = state.seconds
    return AttemptRow(
        execution_id=history.execution_id,
        workflow_id=attempt.workflow_instance_id,
        attempt_id=attempt.task_id,
        step=attempt.reference_task_name,
        task=attempt.task_def_name,
        retry=attempt.retry_count,
        store=history.store,
        repository=_text(workspace.get("repository")),
        branch=_text(workspace.get("branch")),
        input_ref=_text(workspace.get("ref")),
        started_at=history.started_at,
        seconds=max(0.0, history.last_at - history.started_at),
        status=_status(state),
        failed_in=state.failed_in or None,
        reason=_text(state.outcome.reason if state.outcome else None),
        refused=kind == "refuse" or state.failed_in in _ATTEMPT_FENCES,
        kind=_text(kind),
        head=_text(state.decision.head if state.decision else None),
        ref=_ref(state),
        fence=_text(state.published.fence if state.published else None),
        decided_at=state.decided_at,
        publish_seconds=phases.get(Phase.PUBLISH.value),
        after_body_seconds=_after_body(phases),
        files_read=down.files if down else None,
        bytes_read=down.bytes if down else None,
        files_written=up.files if up else None,
        bytes_written=up.bytes if up else None,
        added=added,
        changed=changed,
        removed=removed,
        phases=phases,
    )


def publication_row(
    row: AttemptRow, visible: frozenset[str] | None = None
) -> PublicationRow | None:
    """Return what an execution did to its branch, or None when it did nothing."""
    if row.kind in {None, "refuse"} or row.ref is None or row.repository is None:
        return None
    return PublicationRow(
        store=row.store,
        repository=row.repository,
        branch=row.branch or "",
        ref=row.ref,
        parent={"merge": row.head, "replace": row.input_ref}.get(row.kind or ""),
        kind=str(row.kind),
        replaced=row.head if row.kind in {"replace", "relocate"} else None,
        fence=row.fence,
        task=row.task,
        step=row.step,
        workflow_id=row.workflow_id,
        attempt_id=row.attempt_id,
        execution_id=row.execution_id,
        retry=row.retry,
        published_at=row.decided_at or row.started_at,
        publish_seconds=row.publish_seconds,
        visible=None if visible is None else row.ref in visible,
    )


def unlogged(
    history: Iterable[Commit],
    known: frozenset[str],
    repository: str,
    branch: str,
    store: str | None = None,
) -> Iterable[PublicationRow]:
    """Yield the publications of a branch that other machines made: their commits tell of them."""
    for commit in history:
        said = commit.metadata
        execution = said.get("perago.execution_id")
        if not execution or execution in known:
            continue
        key = said.get("perago.logical_task_key", "")
        yield PublicationRow(
            store=store,
            repository=repository,
            branch=branch,
            ref=commit.id,
            parent=commit.parent,
            # A staging commit that stands on the branch replaced another one there.
            kind="merge" if said.get("perago.phase") == "confirm" else "replace",
            replaced=None,
            fence=None,
            task=said.get("perago.task", ""),
            step=key.partition(":")[2].rpartition(":")[0],
            workflow_id=said.get("perago.workflow_instance_id", ""),
            attempt_id=said.get("perago.task_id", ""),
            execution_id=execution,
            retry=int(said.get("perago.retry_count", "0")),
            published_at=commit.created_at,
            publish_seconds=None,
            visible=True,
        )


def _after_body(phases: Mapping[str, float]) -> float | None:
    """Return how long all took that follows the author's code; None where that never ended."""
    if Phase.BODY.value not in phases:
        return None
    return sum(seconds for name, seconds in phases.items() if name in _AFTER_BODY)


def _status(state: AttemptState) -> str:
    if state.outcome is None:
        return "DIED"
    return "LOST" if state.completion_lost else state.outcome.status


def _ref(state: AttemptState) -> str | None:
    if state.decision and state.decision.kind in {"keep", ADOPT}:
        return _text(state.decision.head)
    moved = state.published or state.applied
    return _text(moved.ref if moved else None)


def _text(value: object) -> str | None:
    return str(value) if value else None
