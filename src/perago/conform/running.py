"""All cases one after the other, and what follows from them for V1 to V9."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from perago.conform.cases import CASES, ConformanceCase
from perago.conform.examining import CaseReport, Examiner
from perago.errors import UsageError
from perago.protocol.evidence import MEANINGS, BrokenPromise, Invariant
from perago.protocol.kinds import FenceKind

LIMITS: Final = {
    Invariant.V6: "only the repository is looked at, not the files of the worker's machine",
    Invariant.V8: "only the keys and addresses are looked for that this command itself uses",
}
"""What stays unseen also where a promise was looked at."""
UNSEEN: Final = (
    "two readings of the head that differ (F3), and a Conductor that does not answer (F2, P2a)",
    "answers that are lost or refused: sending again, settling, the margin (P6, P8, P9, P11)",
    "whether C was merged by its id and verified afterwards (P5)",
    "size and checksum of damaged downloads (D3); links and special files (S3)",
    "whether a heartbeat reads the task and stops a lost body (W4), and reports are read back (R2)",
    "directories, logs and environment of the worker; what it holds in memory between attempts",
)
"""What no case looks at, because servers that work do not show it."""
UNSEEN_HARD: Final = (
    "the reset to itself and the reading of action runs under fence hard (K3): they leave no trace",
)


def unseen(fence: FenceKind) -> tuple[str, ...]:
    """Return what is not looked at, whichever cases were done."""
    return (*UNSEEN, *UNSEEN_HARD) if fence == "hard" else UNSEEN


class PromiseState(StrEnum):
    """How a promise stands after all cases."""

    HELD = "held"
    BROKEN = "broken"
    UNSEEN = "not looked at"


@dataclass(frozen=True, slots=True)
class PromiseReport:
    """One of V1 to V9."""

    invariant: Invariant
    state: PromiseState
    means: str
    limit: str
    broken: tuple[tuple[str, BrokenPromise], ...]
    """By the name of the case."""


def chosen(names: Sequence[str]) -> tuple[ConformanceCase, ...]:
    """Return the cases with these names; all of them when none is named."""
    known = {case.name: case for case in CASES}
    for name in names:
        if name not in known:
            raise UsageError(f"there is no case {name!r}", remedy=f"choose of {', '.join(known)}")
    return tuple(case for case in CASES if not names or case.name in names)


def examine(examiner: Examiner, cases: Sequence[ConformanceCase]) -> Iterator[CaseReport]:
    """Do the cases; what one leaves is deleted, unless it shows something that is broken."""
    for case in cases:
        report = CaseReport(case.name, case.about)
        began, before = time.monotonic(), examiner.repository.all_branches()
        case.run(examiner, report)
        report.seconds = time.monotonic() - began
        if not report.broken:
            for branch in examiner.repository.all_branches() - before:
                examiner.repository.drop(branch)
        yield report


def promises(reports: Sequence[CaseReport]) -> list[PromiseReport]:
    """Sum up what the cases have shown."""
    return [_promise(invariant, reports) for invariant in Invariant]


def conforms(found: Sequence[PromiseReport]) -> bool:
    """Tell whether something was looked at, and nothing is broken."""
    states = {one.state for one in found}
    return PromiseState.HELD in states and PromiseState.BROKEN not in states


def _promise(invariant: Invariant, reports: Sequence[CaseReport]) -> PromiseReport:
    broken = tuple(
        (report.name, found)
        for report in reports
        for found in report.broken
        if found.invariant is invariant
    )
    looked = any(invariant in report.looked for report in reports)
    held = PromiseState.HELD if looked else PromiseState.UNSEEN
    state = PromiseState.BROKEN if broken else held
    means, limit = MEANINGS[invariant], LIMITS.get(invariant, "")
    return PromiseReport(invariant, state, means, limit, broken)
