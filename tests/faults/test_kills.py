"""kill -9 of the executor at every point of every path; the retry completes (V1 to V9, R3, W5).

Real Conductor, real lakeFS, one worker that lives through all of it. On the paths ``replace`` and
``relocate`` the first attempt dies right after it published, and the second at the point.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass

import pytest

from tests import injection
from tests.faults.campaign import Campaign, cases_of
from tests.faults.conftest import NewRig
from tests.faults.paths import (
    AFTER_ABANDONED,
    BODY,
    FENCES,
    MODES,
    POINTS_OF,
    REPORT,
    OnPath,
    matters,
    selected,
)
from tests.faults.rig import Begun, Rig, kill_at
from tests.patience import LIMIT
from tests.worker.stage import eventually

EXECUTORS = 4
PATIENCE_SECONDS = 2 * LIMIT
UNDISTURBED = ""
DEATH = "executor died.*killed by SIGKILL|the program was ended by SIGKILL"
"""Where a program is the body, it can die without its executor."""


@dataclass(frozen=True)
class Case(OnPath):
    """Where an attempt dies, on which path, under which fence (``look``: the read-only task)."""

    number: int
    point: str
    path: str
    fence: str

    def __str__(self) -> str:
        fence = "" if self.path == "read-only" else f"-{self.fence}"
        return f"kill/{self.point or 'nowhere'}/SIGKILL/{self.path}{fence}"

    @property
    def step(self) -> str:
        return f"k{self.number}"

    def places(self) -> list[tuple[str, int, str]]:
        before = [(self.step, 0, "after publish")] if self.path in AFTER_ABANDONED else []
        if self.point in {BODY, UNDISTURBED}:
            return before
        return [*before, (self.step, self.victim, self.point)]


def every_case(*points_besides: str) -> list[Case]:
    lines = [
        (point, path, fence)
        for path, points in POINTS_OF.items()
        for fence in (("look",) if path == "read-only" else FENCES)
        for point in (*points_besides, BODY, *points)
        if matters(point, path, fence) and (point or fence in {"look", "hard"})
    ]
    return [Case(number, *line) for number, line in enumerate(lines)]


CASES = every_case(UNDISTURBED)
QUICK = {"during download", BODY, "committed", "decision", "applied", "before directory cleanup"}


def is_quick(case: Case) -> bool:
    """Choose a few points on each path, under the fence that has most to do there."""
    return case.point in QUICK and case.fence in {"look", "hard"}


CHOSEN = selected(CASES, is_quick)


# --- the executor ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rig(new_rig: NewRig) -> Rig:
    rig = new_rig()
    places = [place for case in CASES for place in case.places()]
    rig.work(EXECUTORS, kill_at(places))
    return rig


@pytest.fixture(scope="module")
def campaign(request: pytest.FixtureRequest, rig: Rig) -> Campaign[Case]:
    def begin(case: Case) -> Begun:
        die = case.victim if case.point == BODY else -1
        return rig.begin(case.step, case.fence, mode=MODES.get(case.path, "change"), die=die)

    order = cases_of(request, test_kill.__name__, Case)
    return Campaign(order, begin)


@pytest.mark.parametrize("case", CHOSEN, ids=str)
def test_kill(rig: Rig, campaign: Campaign[Case], case: Case) -> None:
    if case.point == UNDISTURBED:
        injection.control("what the others are compared with")
    begun = campaign.take(case)
    ended = rig.completed(begun.workflow_id, PATIENCE_SECONDS)
    deaths = case.victim + (case.point != UNDISTURBED)
    assert rig.statuses(begun) == ["FAILED"] * deaths + ["COMPLETED"]
    for task in ended["tasks"][:-1]:  # R3
        assert re.search(DEATH, task["reasonForIncompletion"])
    assert rig.findings(begun) == []
    if case.point == UNDISTURBED and case.fence in {"look", "hard"}:
        told = rig.events(begun)[-1]
        assert tuple(point for point in told if point in POINTS_OF[case.path]) == tuple(
            point for point in POINTS_OF[case.path] if not point.startswith("during ")
        )


# --- the supervisor: it is the one that reports ---------------------------------------------------

REPORTING = [
    Case(number, point, path, "look" if path == "read-only" else "hard")
    for number, (point, path) in enumerate((point, path) for path in POINTS_OF for point in REPORT)
]

REPORTING_CHOSEN = selected(REPORTING, lambda case: case.path == "replace")


@pytest.fixture(scope="module")
def hasty(new_rig: NewRig) -> Rig:
    """Give a rig whose leases are over soon."""
    return new_rig(3)


@pytest.mark.parametrize("case", REPORTING_CHOSEN, ids=str)
def test_kill_of_the_supervisor(hasty: Rig, case: Case) -> None:
    begun = hasty.begin(case.step, case.fence, mode=MODES.get(case.path, "change"))
    first = hasty.work(1, kill_at(case.places()), ready=False)
    eventually(lambda: first.process.poll() is not None, "the death of the worker")
    assert first.process.returncode == -signal.SIGKILL
    second = hasty.work(1)
    ended = hasty.given_up(begun.workflow_id, PATIENCE_SECONDS)
    before = ["FAILED"] * case.victim
    lost = ["TIMED_OUT"] if case.point == "before report" else []
    assert hasty.short_leases(begun) == [*before, *lost, "COMPLETED"]
    assert ended["status"] == "COMPLETED"
    eventually(lambda: hasty.findings(begun) == [], "a clean end")
    assert second.stop() == 0
