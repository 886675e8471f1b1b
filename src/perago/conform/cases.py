"""The cases that a foreign worker is driven through; each on a target of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from perago.conform.examining import (
    NOTHING_NEW,
    PAUSE_SECONDS,
    RETRIED_SECONDS,
    CaseReport,
    CaseTarget,
    Examiner,
    params,
)
from perago.conform.kills import kill
from perago.conform.repository import respelled
from perago.protocol.conformance import AttemptRecord, Expected
from perago.protocol.values import Status


def happy_path(examiner: Examiner, report: CaseReport) -> None:
    """Publish on A (P1)."""
    target = examiner.case(report.name)
    workflow = examiner.workflows.start(target.given(params()))
    ended = examiner.workflows.end(workflow)
    report.add(target.look(target.arranged(Expected.PUBLISHED, "P1"), workflow, ended=ended))


def no_op(examiner: Examiner, report: CaseReport) -> None:
    """Write what is there already: complete with A, write nothing (N1)."""
    target = examiner.case(report.name)
    workspace = respelled(target.workspace)
    given = target.given(params(NOTHING_NEW, ()), workspace)
    workflow = examiner.workflows.start(given)
    ended = examiner.workflows.end(workflow)
    arranged = target.arranged(Expected.KEPT, "N1", workspace=workspace)
    report.add(target.look(arranged, workflow, ended=ended))


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


def stale_attempt(examiner: Examiner, report: CaseReport) -> None:
    """Lose the attempt while the body works: publish nothing (F1)."""
    target, workflows = examiner.case(report.name), examiner.workflows
    workflow = workflows.start(target.given(params(pause_seconds=PAUSE_SECONDS)))
    workflows.claimed(workflow)
    workflows.terminate(workflow)
    others = examiner.settle(PAUSE_SECONDS)
    arranged = target.arranged(Expected.NOTHING, "F1")
    report.add(target.look(arranged, workflow, ended=True, others=others))


def takeover(examiner: Examiner, report: CaseReport) -> None:
    """Lose the attempt to its retry: only the retry publishes (F1)."""
    target, workflows = examiner.case(report.name), examiner.workflows
    asked = params(pause_seconds=PAUSE_SECONDS)
    workflow = workflows.start(target.given(asked), retries=1)
    workflows.take_away(workflows.claimed(workflow), "the attempt is given to another")
    ended = workflows.end(workflow, 2 * PAUSE_SECONDS + RETRIED_SECONDS)
    others = examiner.settle(0.0) if ended else ()
    arranged = target.arranged(Expected.PUBLISHED, "F1")
    report.add(target.look(arranged, workflow, ended=ended, others=others))


def foreign_head(examiner: Examiner, report: CaseReport) -> None:
    """Find commits of a stranger after A: refuse (P3); a new workflow from there succeeds (P9).

    Under ``hard`` a single one is refused as well: it is not of this step (K3).
    """
    target, workflows = examiner.case(report.name), examiner.workflows
    head = _of_stranger(examiner, target, 2)
    refused = _refused(examiner, report, target, head, "P3")
    again = target.workspace.at(head)
    if examiner.repository.head(again).id == head:
        workflow = workflows.start(target.given(params(), again))
        ended = workflows.end(workflow)
        arranged = target.arranged(Expected.PUBLISHED, "P9", workspace=again)
        report.add(target.look(arranged, workflow, ended=ended, others=refused))
    if examiner.repository.fence == "hard":
        child = examiner.case(f"{report.name} child")
        _refused(examiner, report, child, _of_stranger(examiner, child, 1), "K3")


def _of_stranger(examiner: Examiner, target: CaseTarget, count: int) -> str:
    """Commit on the target without a word about any attempt; return the last one."""
    repository, head = examiner.repository, ""
    for number in range(count):
        files = {f"{repository.prefix}stranger-{number}.txt": "of a stranger\n"}
        head = repository.commit(target.workspace.branch, files, {}).id
    return head


def _refused(
    examiner: Examiner, report: CaseReport, target: CaseTarget, head: str, rule: str
) -> tuple[AttemptRecord, ...]:
    """Run an attempt that has to leave the head where it is."""
    workflow = examiner.workflows.start(target.given(params()))
    ended = examiner.workflows.end(workflow)
    arranged = target.arranged(Expected.REFUSED, rule, before=head)
    report.add(target.look(arranged, workflow, ended=ended))
    return examiner.records(workflow)


def completed_publication(examiner: Examiner, report: CaseReport) -> None:
    """Read A once more after another step was completed on it: refuse (P2a)."""
    target, workflows = examiner.case(report.name), examiner.workflows
    second = params({"second.txt": "of the second step\n"}, ())
    workflow = workflows.start(target.given(params()), target.given(second))
    if workflows.end(workflow) and workflows.attempts(workflow, 1):
        output = workflows.attempts(workflow)[0].get("outputData") or {}
        ref = str((output.get("workspace") or {}).get("ref"))
        arranged = target.arranged(Expected.REFUSED, "P2a", before=ref, accepted=(ref,))
        first = examiner.records(workflow)
        report.add(target.look(arranged, workflow, ended=True, number=1, others=first))
        return
    ended = bool(workflows.attempts(workflow)[0]["status"] != "IN_PROGRESS")
    report.add(target.look(target.arranged(Expected.PUBLISHED, "P1"), workflow, ended=ended))


def terminal_error(examiner: Examiner, report: CaseReport) -> None:
    """Fail for good: no retry, nothing published (T4)."""
    target, workflows = examiner.case(report.name), examiner.workflows
    workflow = workflows.start(target.given(params(terminal=True)), retries=1)
    ended = workflows.end(workflow, RETRIED_SECONDS)
    status = str(Status.FAILED_WITH_TERMINAL_ERROR)
    arranged = target.arranged(Expected.REFUSED, "T4", status=status)
    report.add(target.look(arranged, workflow, ended=ended))


def refused_input(examiner: Examiner, report: CaseReport) -> None:
    """Get an input that must be refused: a branch as ref, a short id, one more key, a bad name."""
    workflows, repository = examiner.workflows, examiner.repository
    for rule, spoil in _SPOILT.items():
        target = examiner.case(f"{report.name} {rule.lower()}")
        given = spoil(target.given(params()))
        before = target.workspace.ref
        if rule == "D2":
            key = f"{repository.prefix}../escape.txt"
            before = repository.commit(target.workspace.branch, {key: "outside\n"}, {}).id
            given = target.given(params(), target.workspace.at(before))
        workflow = workflows.start(given)
        ended = workflows.end(workflow)
        arranged = target.arranged(Expected.REFUSED, rule.partition(" ")[0], before=before)
        report.add(target.look(arranged, workflow, ended=ended))


def _with_ref(given: dict[str, Any], ref: str) -> dict[str, object]:
    return {**given, "workspace": {**given["workspace"], "ref": ref}}


_SPOILT: Final[Mapping[str, Callable[[dict[str, Any]], dict[str, object]]]] = {
    "I1": lambda given: {**given, "more": {}},
    "I4 branch": lambda given: _with_ref(given, given["workspace"]["branch"]),
    "I4 short": lambda given: _with_ref(given, given["workspace"]["ref"][:16]),
    "D2": lambda given: given,
}


@dataclass(frozen=True, slots=True)
class ConformanceCase:
    """A name, what it shows, and how it is done."""

    name: str
    about: str
    run: Callable[[Examiner, CaseReport], None]


CASES: Final = (
    ConformanceCase("happy-path", "publish on A", happy_path),
    ConformanceCase("no-op", "change nothing, write nothing", no_op),
    ConformanceCase("replacement", "replace an abandoned publication", replacement),
    ConformanceCase("relocation", "change nothing after an abandoned publication", relocation),
    ConformanceCase("stale-attempt", "lose the attempt while the body works", stale_attempt),
    ConformanceCase("takeover", "lose the attempt to its retry", takeover),
    ConformanceCase("foreign-head", "find commits of a stranger", foreign_head),
    ConformanceCase(
        "completed-publication", "find a publication that was accepted", completed_publication
    ),
    ConformanceCase("terminal-error", "fail for good", terminal_error),
    ConformanceCase("refused-input", "get an input that must be refused", refused_input),
    ConformanceCase("kill", "die in the body, while staging, after publishing", kill),
)
NAMES: Final = tuple(case.name for case in CASES)
