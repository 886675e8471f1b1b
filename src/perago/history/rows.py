"""Executions and publications as flat rows: what reports and queries are made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perago.history.event_log import Event
from perago.history.story import AttemptHistory, story
from perago.protocol.adoption import ADOPT
from perago.protocol.values import Commit, Phase

_CUT = re.compile(r"\.\.\. (\d+) more")
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


def attempt_row(events: Sequence[Event]) -> AttemptRow:
    """Flatten the events of one execution, given in order."""
    told = story(events)
    attempt = told.attempt
    workspace = told.workspace or {}
    decision, published = told.decision or {}, told.published or {}
    facts = {event.name: event.facts for event in events}
    applied: Mapping[str, Any] = facts.get("applied", {})
    failed_in = _failed_in(told)
    phases = {phase.name: phase.seconds for phase in told.phases if phase.seconds is not None}
    down, up = facts.get("downloaded", {}), facts.get("uploaded", {})
    return AttemptRow(
        execution_id=told.execution_id,
        workflow_id=attempt.workflow_instance_id,
        attempt_id=attempt.task_id,
        step=attempt.reference_task_name,
        task=attempt.task_def_name,
        retry=attempt.retry_count,
        store=told.store,
        repository=_text(workspace.get("repository")),
        branch=_text(workspace.get("branch")),
        input_ref=_text(workspace.get("ref")),
        started_at=told.started_at,
        seconds=max(0.0, events[-1].at - told.started_at),
        status=_status(told),
        failed_in=failed_in,
        reason=_text((told.outcome or {}).get("reason")),
        refused=decision.get("kind") == "refuse" or failed_in in _ATTEMPT_FENCES,
        kind=_text(decision.get("kind")),
        head=_text(decision.get("head")),
        ref=_ref(decision, published or applied),
        fence=_text(published.get("fence")),
        decided_at=next((event.at for event in events if event.name == "decision"), None),
        publish_seconds=phases.get(Phase.PUBLISH.value),
        after_body_seconds=_after_body(phases),
        files_read=_number(down.get("files")),
        bytes_read=_number(down.get("bytes")),
        files_written=_number(up.get("files")),
        bytes_written=_number(up.get("bytes")),
        added=_count(told, "added"),
        changed=_count(told, "changed"),
        removed=_count(told, "removed"),
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


def _status(told: AttemptHistory) -> str:
    if told.outcome is None:
        return "DIED"
    return "LOST" if told.lost_completion else str(told.outcome["status"])


def _failed_in(told: AttemptHistory) -> str | None:
    open_phases = [phase.name for phase in told.phases if phase.seconds is None]
    return open_phases[0] if open_phases else None


def _ref(decision: Mapping[str, Any], moved: Mapping[str, Any]) -> str | None:
    if decision.get("kind") in {"keep", ADOPT}:
        return _text(decision.get("head"))
    return _text(moved.get("ref"))


def _count(told: AttemptHistory, kind: str) -> int | None:
    """Count paths of a list that may have been cut."""
    if told.change is None:
        return None
    paths = told.change.get(kind) or []
    cut = _CUT.fullmatch(str(paths[-1])) if paths else None
    return len(paths) - 1 + int(cut[1]) if cut else len(paths)


def _text(value: object) -> str | None:
    return str(value) if value else None


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None
