"""The cases that a foreign worker is driven through; each on a target of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from perago.conform.examining import (
    NOTHING_NEW,
    RETRIED_SECONDS,
    CaseReport,
    CaseTarget,
    Examiner,
    params,
)
from perago.conform.heads import (
    doubtful_heads,
    relocation,
    replacement,
    uncommitted_changes,
    unfinished_replacement,
    unproven_fence,
)
from perago.conform.inputs import refused_input, refused_keys
from perago.conform.kills import kill
from perago.conform.losing import (
    handed_out_again,
    long_body,
    second_fence,
    stale_attempt,
    takeover,
)
from perago.conform.objects import many_objects, odd_names
from perago.conform.repository import respelled
from perago.protocol.evidence import AttemptRecord, Expected
from perago.protocol.values import Status


def happy_path(examiner: Examiner, report: CaseReport) -> None:
    """Publish on A (P1)."""
    target = examiner.case(report.name)
    workflow = examiner.workflows.start(target.given(params()))
    ended = examiner.workflows.end(workflow)
    # It is the first case: a worker that was just started has tried the fence nowhere yet.
    probing = examiner.fence == "hard" and examiner.worker is not None
    arranged = target.arranged(Expected.PUBLISHED, "P1", probing=probing)
    report.add(target.look(arranged, workflow, ended=ended))


def no_op(examiner: Examiner, report: CaseReport) -> None:
    """Write what is there already: complete with A, write nothing (N1)."""
    target = examiner.case(report.name)
    workspace = respelled(target.workspace)
    given = target.given(params(NOTHING_NEW, ()), workspace)
    workflow = examiner.workflows.start(given)
    ended = examiner.workflows.end(workflow)
    arranged = target.arranged(Expected.KEPT, "N1", workspace=workspace)
    report.add(target.look(arranged, workflow, ended=ended))


def foreign_head(examiner: Examiner, report: CaseReport) -> None:
    """Find commits of a stranger after A: refuse (P3); a new workflow from there succeeds (P1).

    Under ``hard`` and ``lineage`` a single one is refused as well: it is not of this step (K3, K2).
    """
    target, workflows = examiner.case(report.name), examiner.workflows
    head = _of_stranger(examiner, target, 2)
    refused = _refused(examiner, report, target, head, "P3")
    again = target.workspace.at(head)
    if examiner.repository.head(again).id == head:
        workflow = workflows.start(target.given(params(), again))
        ended = workflows.end(workflow)
        arranged = target.arranged(Expected.PUBLISHED, "P1", workspace=again)
        report.add(target.look(arranged, workflow, ended=ended, others=refused))
    if examiner.fence != "head":
        child, rule = examiner.case(f"{report.name} child"), _OWN_STEP[examiner.fence]
        _refused(examiner, report, child, _of_stranger(examiner, child, 1), rule)


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


@dataclass(frozen=True, slots=True)
class ConformanceCase:
    """A name, what it shows, and how it is done."""

    name: str
    about: str
    run: Callable[[Examiner, CaseReport], None]


_OWN_STEP: Final = {"hard": "K3", "lineage": "K2"}
CASES: Final = (
    ConformanceCase("happy-path", "publish on A", happy_path),
    ConformanceCase("no-op", "change nothing, write nothing", no_op),
    ConformanceCase("odd-names", "publish odd keys from a step with an odd name", odd_names),
    ConformanceCase("many-objects", "delete more than one page of objects", many_objects),
    ConformanceCase("replacement", "replace an abandoned publication", replacement),
    ConformanceCase("relocation", "change nothing after an abandoned publication", relocation),
    ConformanceCase("doubtful-heads", "ask what became of the task of the head", doubtful_heads),
    ConformanceCase(
        "uncommitted-changes", "find changes that were not committed", uncommitted_changes
    ),
    ConformanceCase("unfinished-replacement", "find half of a replacement", unfinished_replacement),
    ConformanceCase(
        "unproven-fence", "read an A that fence hard does not hold for", unproven_fence
    ),
    ConformanceCase("stale-attempt", "lose the attempt while the body works", stale_attempt),
    ConformanceCase("second-fence", "lose the attempt while it stages", second_fence),
    ConformanceCase("handed-out-again", "lose the attempt to a rerun", handed_out_again),
    ConformanceCase("takeover", "lose the attempt to its retry", takeover),
    ConformanceCase("long-body", "work for longer than the lease lasts", long_body),
    ConformanceCase("foreign-head", "find commits of a stranger", foreign_head),
    ConformanceCase(
        "completed-publication", "find a publication that was accepted", completed_publication
    ),
    ConformanceCase("terminal-error", "fail for good", terminal_error),
    ConformanceCase("refused-input", "get an input that must be refused", refused_input),
    ConformanceCase("refused-keys", "read keys that cannot be files", refused_keys),
    ConformanceCase("kill", "die in the body, while staging, after publishing", kill),
)
NAMES: Final = tuple(case.name for case in CASES)
