"""SIGSTOP of a whole worker past the response timeout, then SIGCONT (F1 to F3, P8, R2, V1, V3).

At each point of each path: the executor stands still there, then its supervisor does, Conductor
gives the attempt up, another worker completes the retry. The executor wakes up first, so that no
heartbeat warns it: only the fences stand between it and what was completed. Several attempts at
different points are lost together, so that the timeout is waited for once.
"""

from __future__ import annotations

import itertools
import math
import signal
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from perago.protocol.values import Commit
from tests.faults.acts_of import after
from tests.faults.campaign import cases_of
from tests.faults.conftest import NewRig
from tests.faults.paths import (
    AFTER_ABANDONED,
    ALL,
    FENCES,
    MODES,
    POINTS_OF,
    OnPath,
    matters,
    selected,
)
from tests.faults.rig import BRANCH, Begun, Rig, is_stopped, kill_at, signal_all
from tests.patience import LIMIT, scaled
from tests.worker.stage import Worker, eventually

TOGETHER = 24 if ALL else 8
RESPONSE_SECONDS = math.ceil(scaled(5))
PATIENCE_SECONDS = 3 * LIMIT
LAST = "after directory cleanup"
WINDOW = ("after second attempt fence", "before publish", "decision")
"""Behind the last question and before the write: what only the server itself can fence."""


@dataclass(frozen=True)
class Case(OnPath):
    """Where an attempt stands still; ``apart``: no two attempts write the same file."""

    number: int
    point: str
    path: str
    fence: str
    apart: bool = False

    def __str__(self) -> str:
        fence = "" if self.path == "read-only" else f"-{self.fence}"
        apart = " apart" if self.apart else ""
        return f"pause/{self.point}/SIGSTOP/{self.path}{apart}{fence}"

    @property
    def step(self) -> str:
        return f"p{self.number}"

    @property
    def hazard(self) -> str:
        """Say what this fence cannot keep here."""
        if self.point not in WINDOW or self.fence in {"hard", "look"}:
            return ""
        if self.apart:
            return (
                "V1, V4: the late merge lands on the completed publication, a union of both that"
                " nobody decided; the late attempt is not a success, the completed commit stays"
                " reachable"
            )
        if (self.path, self.fence) == ("replace", "head"):
            return (
                "V3: the late hard reset takes the place of the completed publication, which stays"
                " readable by its commit id only; the tree is whole"
            )
        return ""


def every_case() -> list[Case]:
    """List every point of every path; the fences part only where they are first asked."""
    lines: list[tuple[str, str, str, bool]] = []
    for path, points in POINTS_OF.items():
        fence = "look" if path == "read-only" else "hard"
        lines += [(point, path, fence, False) for point in points if matters(point, path, fence)]
    for path, fence in itertools.product(("merge", "replace"), ("head", "lineage")):
        points = POINTS_OF[path][POINTS_OF[path].index("before second attempt fence") :]
        lines += [(point, path, fence, False) for point in points]
    for path, fence in itertools.product(("merge", "replace"), FENCES):
        if (path, fence) != ("replace", "head"):
            lines += [(point, path, fence, True) for point in WINDOW]
    return [Case(number, *line) for number, line in enumerate(lines)]


CASES = every_case()
QUICK = [
    ("before body", "merge", "hard", False),
    ("committed", "merge", "hard", False),
    ("decision", "merge", "hard", False),
    ("decision", "merge", "head", True),
    ("decision", "merge", "hard", True),
    ("decision", "replace", "head", False),
    ("decision", "replace", "hard", False),
    ("applied", "merge", "hard", False),
]
CHOSEN = selected(CASES, lambda case: (case.point, case.path, case.fence, case.apart) in QUICK)


@dataclass(frozen=True)
class Woken:
    """A case whose stale attempt has done all it can."""

    begun: Begun
    before: Commit
    """The head when the retry had completed, before the stale attempt went on."""


class Rounds:
    """Loses some attempts together; each case is asked for its own."""

    def __init__(self, rig: Rig, order: list[Case]) -> None:
        self.rig = rig
        self._rounds = [order[at : at + TOGETHER] for at in range(0, len(order), TOGETHER)]
        self._woken: dict[Case, Woken] = {}
        self._tried: set[Case] = set()
        places = [place for case in order for place in _places(case)]
        self._sleeper = rig.work(TOGETHER, ",".join(places))

    def take(self, case: Case) -> Woken:
        mine = next(cases for cases in self._rounds if case in cases)
        if mine[0] not in self._tried:
            self._tried.add(mine[0])
            self._lose(mine)
        return self._woken[case]

    def _lose(self, cases: list[Case]) -> None:
        rig, sleeper = self.rig, self._sleeper
        begun = {case: _begin(rig, case) for case in cases}
        pids = eventually(
            lambda: _asleep(sleeper, len(cases)), "sleeping executors", PATIENCE_SECONDS
        )
        sleeper.signal(signal.SIGSTOP)
        waker = rig.work(2, root="waker")
        try:
            for one in begun.values():
                rig.given_up(one.workflow_id, PATIENCE_SECONDS)
            heads = {case: rig.store.head(one.repository, BRANCH) for case, one in begun.items()}
            signal_all(pids, signal.SIGCONT)
            for case, one in begun.items():
                eventually(_over(rig, case, one), f"the end of the attempt that slept at {case}")
        finally:
            signal_all(pids, signal.SIGCONT)
            sleeper.signal(signal.SIGCONT)
            waker.stop()
        eventually(lambda: not sleeper.state["running"], "the end of the lost attempts")
        self._woken |= {case: Woken(one, heads[case]) for case, one in begun.items()}


def _places(case: Case) -> list[str]:
    before = kill_at([(case.step, 0, "after publish")] if case.path in AFTER_ABANDONED else [])
    stop = kill_at([(case.step, case.victim, case.point)], ":STOP")
    return [place for place in (before, stop) if place]


def _begin(rig: Rig, case: Case) -> Begun:
    mode = MODES.get(case.path, "change")
    return rig.begin(case.step, case.fence, mode=mode, apart=case.apart)


def _asleep(worker: Worker, wanted: int) -> list[int]:
    """Find the executors that stand still, when they are so many."""
    pids = [pid for pid in worker.pids if pid and is_stopped(pid)]
    return pids if len(pids) == wanted else []


def _over(rig: Rig, case: Case, begun: Begun) -> Callable[[], bool]:
    return lambda: LAST in rig.events(begun)[case.victim]


@pytest.fixture(scope="module")
def rounds(request: pytest.FixtureRequest, new_rig: NewRig) -> Rounds:
    order = cases_of(request, test_pause.__name__, Case)
    return Rounds(new_rig(RESPONSE_SECONDS), order)


@pytest.mark.parametrize("case", CHOSEN, ids=str)
def test_pause(rounds: Rounds, case: Case, record_property: Callable[[str, object], None]) -> None:
    woken = rounds.take(case)
    rig, begun = rounds.rig, woken.begun
    assert rig.statuses(begun) == ["FAILED"] * case.victim + ["TIMED_OUT", "COMPLETED"]
    events = rig.events(begun)[case.victim]
    (accepted,) = (
        task["outputData"]["workspace"]["ref"]
        for task in rig.workflow(begun.workflow_id)["tasks"]
        if task["status"] == "COMPLETED"
    )
    assert woken.before.id == accepted
    assert list(rig.left(begun, rig.workflow(begun.workflow_id))) == []  # V7
    if not case.hazard:
        assert rig.store.head(begun.repository, BRANCH).id == accepted
        assert rig.findings(begun) == []
        return
    record_property("documented", case.hazard)
    head = rig.store.head(begun.repository, BRANCH)
    assert head.metadata["perago.retry_count"] == str(case.victim)
    if case.apart:  # V3 holds; the stale attempt saw that its merge is not alone and failed.
        assert head.parents[0] == accepted
        assert "published" not in events
    else:
        assert accepted not in rig.history(begun.workspace)
        assert rig.store.commit(begun.repository, accepted).id == accepted  # P10
        listing = rig.store.listing(begun.repository, head.id, "")
        assert {info.key for info in listing} == set(after(begun.base, case.victim))  # V4
