"""Heads that an attempt finds behind A: abandoned or not, clean or not, whole or half."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

from perago.conform.examining import (
    NOTHING_NEW,
    RETRIED_SECONDS,
    CaseReport,
    CaseTarget,
    Examiner,
    params,
)
from perago.protocol.evidence import Expected
from perago.protocol.values import Commit, Status

_PAUSES: Final = (2.0, 6.0, 18.0)
"""How long a body waits until a head is there that names its own attempt."""
_NOBODY: Final = "00000000-0000-4000-8000-000000000000"
"""An id that no workflow and no task has."""


def replacement(examiner: Examiner, report: CaseReport) -> None:
    """Meet an abandoned publication with a change: A -> C (P2)."""
    _after_abandoned(examiner, report, params(fail_attempts=1), Expected.PUBLISHED, "P2")


def relocation(examiner: Examiner, report: CaseReport) -> None:
    """Meet an abandoned publication without a change: back to A (N2)."""
    asked = params(NOTHING_NEW, (), fail_attempts=1)
    _after_abandoned(examiner, report, asked, Expected.KEPT, "N2")


def _after_abandoned(
    examiner: Examiner,
    report: CaseReport,
    asked: Mapping[str, object],
    expected: Expected,
    rule: str,
) -> None:
    target, workflows = examiner.case(report.name), examiner.workflows
    workflow = workflows.start(target.given(asked), retries=1)
    first = workflows.failed(workflow)
    if first is None:
        arranged = target.arranged(expected, rule)
        report.add(target.look(arranged, workflow, ended=False))
        return
    if first["status"] != Status.FAILED:
        workflows.terminate(workflow)
        arranged = target.arranged(Expected.REFUSED, "T4")
        report.add(target.look(arranged, workflow, ended=True))
        return
    planted = target.plant(first)
    if not target.in_time(planted):
        workflows.terminate(workflow)
        report.skipped = "the second attempt came before the abandoned publication was planted"
        return
    ended = workflows.end(workflow, RETRIED_SECONDS)
    arranged = target.arranged(expected, rule, before=planted.id, planted=frozenset({planted.id}))
    report.add(target.look(arranged, workflow, ended=ended))


def doubtful_heads(examiner: Examiner, report: CaseReport) -> None:
    """Meet a child of A of which Conductor or its own words say what may become of it (P2a)."""
    if examiner.fence == "head":  # The others refuse a head of another step in any case.
        _strange_heads(examiner, report)
    _own_head(
        examiner,
        report,
        "unknown-task",
        (Expected.PUBLISHED, "P2a"),
        lambda target, task: target.plant(task, task_id=_NOBODY),
    )
    twin = (Expected.REFUSED, "K3") if examiner.fence == "hard" else (Expected.PUBLISHED, "P2a")
    _own_head(examiner, report, "twin", twin, lambda target, task: target.plant(task))


def _strange_heads(examiner: Examiner, report: CaseReport) -> None:
    """Find heads that are not of this step."""
    other = examiner.workflows.open_task()
    nobody = {**other, "taskId": _NOBODY, "workflowInstanceId": _NOBODY}
    rows: Mapping[str, Callable[[CaseTarget], Mapping[str, str]]] = {
        "kind": lambda _: {"perago.kind": "import"},
        "unknown-task-of-others": lambda target: target.words(nobody),
        "open-task-of-others": lambda target: target.words(other),
    }
    for row, words in rows.items():
        target = examiner.case(f"{report.name} {row}")
        head = _child(examiner, target, words(target))
        _ended(examiner, report, target, params(), (Expected.REFUSED, "P2a"), before=head.id)
    examiner.workflows.terminate(str(other["workflowInstanceId"]))
    target = examiner.case(f"{report.name} no-task")
    head = _child(examiner, target, {"perago.task_id": ""})
    planted = frozenset({head.id})
    expected = (Expected.PUBLISHED, "P2a")
    _ended(examiner, report, target, params(), expected, before=head.id, planted=planted)


def _child(examiner: Examiner, target: CaseTarget, words: Mapping[str, str]) -> Commit:
    return examiner.repository.commit(target.workspace.branch, target.stray(), words)


def _ended(
    examiner: Examiner,
    report: CaseReport,
    target: CaseTarget,
    asked: Mapping[str, object],
    expected: tuple[Expected, str],
    **more: Any,
) -> None:
    """Run an attempt on a target as it is."""
    workflow = examiner.workflows.start(target.given(asked))
    ended = examiner.workflows.end(workflow)
    report.add(target.look(target.arranged(*expected, **more), workflow, ended=ended))


def _own_head(
    examiner: Examiner,
    report: CaseReport,
    row: str,
    expected: tuple[Expected, str],
    plant: Callable[[CaseTarget, Mapping[str, Any]], Commit],
) -> None:
    """Let a head that names this step appear while its body works."""
    workflows = examiner.workflows
    for pause in _PAUSES:
        target = examiner.case(f"{report.name} {row}")
        began = time.monotonic()
        workflow = workflows.start(target.given(params(pause_seconds=pause)))
        head = plant(target, workflows.claimed(workflow))
        if time.monotonic() - began < pause:  # The body cannot have ended before.
            break
        workflows.terminate(workflow)
        examiner.settle(pause)
    else:
        report.skipped = f"a head could not be planted in time ({row})"
        return
    ended = workflows.end(workflow, pause)
    refused = expected[0] is Expected.REFUSED
    made = {head.id, *head.parents} - {target.workspace.ref}
    planted = frozenset() if refused else frozenset(made)
    arranged = target.arranged(*expected, before=head.id, planted=planted)
    report.add(target.look(arranged, workflow, ended=ended))


def uncommitted_changes(examiner: Examiner, report: CaseReport) -> None:
    """Meet an abandoned publication with uncommitted changes over it: refuse (P4)."""
    if examiner.fence != "head":
        report.skipped = f"under {examiner.fence} the merge of a replacement is refused by lakeFS"
        return
    for row, asked in {"replace": params(), "relocate": params(NOTHING_NEW, ())}.items():
        target = examiner.case(f"{report.name} {row}")
        head = _child(examiner, target, {})
        loose = {f"{examiner.repository.prefix}loose.txt": "not committed\n"}
        examiner.repository.put(target.workspace.branch, loose)
        expected = (Expected.REFUSED, "P4")
        _ended(examiner, report, target, asked, expected, before=head.id, dirty=True)


def unfinished_replacement(examiner: Examiner, report: CaseReport) -> None:
    """Meet the first half of a replacement: complete it under ``hard``, else refuse (K3, K6)."""

    def half(target: CaseTarget, task: Mapping[str, Any]) -> Commit:
        branch, words = target.workspace.branch, target.words(task, task_id=_NOBODY)
        on = target.workspace.ref
        if examiner.fence == "hard":  # Who does not complete it must not find A behind it.
            on = examiner.repository.commit(branch, target.stray(), words).id
        scratch = f"{branch}-{uuid.uuid4().hex[:8]}"
        examiner.repository.fork(scratch, target.workspace.ref)
        files = {**target.stray(), f"{examiner.repository.prefix}half.txt": "half\n"}
        staged = examiner.repository.commit(scratch, files, words)
        examiner.repository.drop(scratch)
        said = {**words, "perago.intent": "replace", "perago.expected_head": on}
        return examiner.repository.merge(staged.id, branch, said)

    hard = (Expected.PUBLISHED, "K3")
    expected = hard if examiner.fence == "hard" else (Expected.REFUSED, "K6")
    _own_head(examiner, report, "half", expected, half)


def unproven_fence(examiner: Examiner, report: CaseReport) -> None:
    """Read an A without the action of fence ``hard``: refuse before any work (K3)."""
    if examiner.fence != "hard":
        report.skipped = f"fence {examiner.fence} needs no proof"
        return
    target = examiner.case(report.name, fenced=False)
    _ended(examiner, report, target, params(), (Expected.REFUSED, "K3"), early=True)
