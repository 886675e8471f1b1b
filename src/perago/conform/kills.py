"""SIGKILL at three places that the servers show: in the body, while staging, after publishing."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
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
from perago.conform.foreign_worker import ForeignWorker
from perago.protocol.evidence import Expected

_TRIES: Final = 3
_MANY: Final = 60
"""Files, so that staging takes long enough to be met."""
_RETRIES: Final = 3
_LEASE_SECONDS: Final = 10
_PAUSE_SECONDS: Final = 0.005
_IN_BODY_SECONDS: Final = 0.5


def kill(examiner: Examiner, report: CaseReport) -> None:
    """Kill the worker, start it again, and see that the retry publishes one whole result."""
    if examiner.worker is None:
        report.skipped = "a worker that was not started by --command is not killed"
        return
    missed = [place for place, met in _PLACES.items() if not _killed(examiner, report, place, met)]
    if missed:
        report.skipped = f"the worker was too quick to be killed {' and '.join(missed)}"


Met = Callable[[CaseTarget, Examiner, frozenset[str]], bool]


def _in_body(_scene: CaseTarget, _examiner: Examiner, _known: frozenset[str]) -> bool:
    time.sleep(_IN_BODY_SECONDS)
    return True


def _staging(target: CaseTarget, examiner: Examiner, known: frozenset[str]) -> bool:
    """See a private branch, or traces on the target of a worker that makes none."""
    repository = examiner.repository
    return bool(repository.all_branches() - known) or repository.dirty(target.workspace)


def _published(target: CaseTarget, examiner: Examiner, _known: frozenset[str]) -> bool:
    return examiner.repository.head(target.workspace).id != target.workspace.ref


_PLACES: Final[Mapping[str, Met]] = {
    "in the body": _in_body,
    "while staging": _staging,
    "after publishing": _published,
}


def _killed(examiner: Examiner, report: CaseReport, place: str, met: Met) -> bool:
    """Try until the kill comes in time; tell whether it did."""
    worker = examiner.worker
    return worker is not None and any(
        _kill_once(examiner, report, place, met, worker) for _ in range(_TRIES)
    )


def _kill_once(
    examiner: Examiner, report: CaseReport, place: str, met: Met, worker: ForeignWorker
) -> bool:
    target, workflows = examiner.case(f"{report.name} {place}"), examiner.workflows
    write = {**WRITE, **{f"many/{number}.txt": f"{number}\n" for number in range(_MANY)}}
    pause = PAUSE_SECONDS if met is _in_body else 0.0
    known = examiner.repository.all_branches()
    # The poll of the dead may be given the retry; its lease is short, and there are more.
    given = target.given(params(write, pause_seconds=pause))
    workflow = workflows.start(given, retries=_RETRIES, response_seconds=_LEASE_SECONDS)
    workflows.claimed(workflow)
    until = time.monotonic() + workflows.seconds
    while not met(target, examiner, known) and time.monotonic() < until:
        if workflows.attempts(workflow)[0]["status"] != "IN_PROGRESS":
            break
        time.sleep(_PAUSE_SECONDS)
    worker.kill()
    workflows.note(f"killed {place}; the next attempt follows when the lease is over or taken away")
    first = workflows.attempts(workflow)[0]
    in_time = bool(first["status"] == "IN_PROGRESS")
    arranged = target.arranged(Expected.PUBLISHED, "P2", write=write, kills=1)
    if in_time:
        report.add_rest(target.look(arranged, workflow, ended=True))
        workflows.take_away(first, f"the worker was killed {place}")
    worker.start()
    ended = workflows.end(workflow, 2 * (RETRIED_SECONDS + _LEASE_SECONDS) + pause)
    report.add(target.look(arranged, workflow, ended=ended))
    return in_time
