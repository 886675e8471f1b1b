"""Attempts that are lost on the way, at the places where a worker has to ask (F1, W4)."""

from __future__ import annotations

import time
from typing import Final

from perago.conform.examining import (
    PAUSE_SECONDS,
    RETRIED_SECONDS,
    WRITE,
    CaseReport,
    CaseTarget,
    Examiner,
    params,
)
from perago.protocol.evidence import Expected

_MANY: Final = (60, 300, 900)
"""Files, so that staging takes long enough to be met; more of them for a worker that is quick."""
_LOOK_SECONDS: Final = 0.005
LEASE_SECONDS: Final = 5
_LONG_SECONDS: Final = 3.0 * LEASE_SECONDS


def stale_attempt(examiner: Examiner, report: CaseReport) -> None:
    """Lose the attempt while the body works: publish nothing (F1)."""
    target, workflows = examiner.case(report.name), examiner.workflows
    workflow = workflows.start(target.given(params(pause_seconds=PAUSE_SECONDS)))
    workflows.claimed(workflow)
    workflows.terminate(workflow)
    others = examiner.settle(PAUSE_SECONDS)
    arranged = target.arranged(Expected.NOTHING, "F1")
    report.add(target.look(arranged, workflow, ended=True, others=others))


def second_fence(examiner: Examiner, report: CaseReport) -> None:
    """Lose the attempt while it stages, behind its first fence: publish nothing (F1)."""
    for count in _MANY:
        target = examiner.case(report.name)
        if _lost_while_staging(examiner, report, target, count):
            return
    report.skipped = "the worker was too quick, or made no branch: its second fence was not met"


def _lost_while_staging(
    examiner: Examiner, report: CaseReport, target: CaseTarget, count: int
) -> bool:
    """Tell whether the attempt was lost after its branch was made and before C was."""
    workflows, repository = examiner.workflows, examiner.repository
    write = {**WRITE, **{f"many/{number}.txt": f"{number}\n" for number in range(count)}}
    known = repository.all_branches()
    workflow = workflows.start(target.given(params(write)))
    workflows.claimed(workflow)
    until = time.monotonic() + workflows.seconds
    while not (found := repository.all_branches() - known) and time.monotonic() < until:
        if workflows.attempts(workflow)[0]["status"] != "IN_PROGRESS":
            return False
        time.sleep(_LOOK_SECONDS)
    workflows.terminate(workflow)
    # As long as nothing is committed there, the second fence is still to come.
    lost = {name for name in found if repository.ref_of(name) == target.workspace.ref}
    shown = lost & repository.all_branches(hidden=False)
    others = examiner.settle(0.0)
    if not lost:
        return False
    arranged = target.arranged(Expected.NOTHING, "F1", write=write)
    seen = target.look(arranged, workflow, ended=True, others=others, shown=sorted(shown))
    report.add(seen)
    return True


def handed_out_again(examiner: Examiner, report: CaseReport) -> None:
    """Lose the attempt to a rerun of the same task: only the start of it differs (F1)."""
    target, workflows = examiner.case(report.name), examiner.workflows
    pause = 2 * PAUSE_SECONDS
    workflow = workflows.start(target.given(params(pause_seconds=pause)))
    task = workflows.claimed(workflow)
    time.sleep(PAUSE_SECONDS)  # So that the two executions end at different times.
    workflows.terminate(workflow)
    again = time.monotonic()
    if workflows.rerun(task):
        others = examiner.settle(PAUSE_SECONDS)
        arranged = target.arranged(Expected.NOTHING, "F1", held=True)
        report.add(target.look(arranged, workflow, ended=True, others=others))
        workflows.terminate(workflow)
        return
    # The worker does several things at a time, and was quicker: it has both executions. What ends
    # before the body of the second can have ended is the work of the first.
    ended = workflows.end(workflow, 2 * pause)
    stale = ended and time.monotonic() - again < pause
    arranged = target.arranged(Expected.REFUSED if stale else Expected.PUBLISHED, "F1")
    report.add(target.look(arranged, workflow, ended=ended))


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


def long_body(examiner: Examiner, report: CaseReport) -> None:
    """Work for longer than the lease lasts: the first attempt ends well all the same (W4)."""
    target, workflows = examiner.case(report.name), examiner.workflows
    given = target.given(params(pause_seconds=_LONG_SECONDS))
    workflow = workflows.start(given, retries=1, response_seconds=LEASE_SECONDS)
    ended = workflows.end(workflow, 2 * _LONG_SECONDS + RETRIED_SECONDS)
    report.add(target.look(target.arranged(Expected.PUBLISHED, "W4"), workflow, ended=ended))
