"""kill -9 of the executor at every point of an attempt whose Spark writes to lakeFS itself (X2).

Its branch is there before the body, so some points come twice; each is met where it comes first.
A JVM for each case takes its time: these are part of ``make faults`` only.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.faults.campaign import Campaign, cases_of
from tests.faults.conftest import NewRig
from tests.faults.paths import BODY, POINTS_OF
from tests.faults.rig import Begun, Rig, kill_at
from tests.patience import LIMIT

MODULE = "tests.faults.acts_spark"
PATIENCE_SECONDS = 3 * LIMIT
SKIPPED = {"before download", "during download", "downloaded", "after download"} | {
    "during stage",
    "uploaded",
}
"""Nothing is downloaded or uploaded by the attempt itself."""


@dataclass(frozen=True)
class Case:
    number: int
    point: str

    def __str__(self) -> str:
        return f"spark/{self.point}/SIGKILL/direct-hard"

    @property
    def step(self) -> str:
        return f"x{self.number}"


POINTS = (BODY, *(point for point in POINTS_OF["merge"] if point not in SKIPPED))
CASES = [Case(number, point) for number, point in enumerate(POINTS)]


@pytest.fixture(scope="module")
def rig(new_rig: NewRig) -> Rig:
    rig = new_rig(module=MODULE)
    rig.work(2, kill_at((case.step, 0, case.point) for case in CASES if case.point != BODY))
    return rig


@pytest.fixture(scope="module")
def campaign(request: pytest.FixtureRequest, rig: Rig) -> Campaign[Case]:
    def begin(case: Case) -> Begun:
        return rig.begin(case.step, "hard", task="spark", die=0 if case.point == BODY else -1)

    return Campaign(cases_of(request, test_spark_kill.__name__, Case), begin, ahead=3)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_spark_kill(rig: Rig, campaign: Campaign[Case], case: Case) -> None:
    begun = campaign.take(case)
    ended = rig.completed(begun.workflow_id, PATIENCE_SECONDS)
    assert rig.statuses(begun) == ["FAILED", "COMPLETED"]
    assert "killed by SIGKILL" in ended["tasks"][0]["reasonForIncompletion"]
    ref = ended["tasks"][-1]["outputData"]["workspace"]["ref"]
    assert rig.history(begun.workspace) == [ref]  # V1 to V3
    keys = {info.key for info in rig.store.listing(begun.repository, ref, "")}
    table = {key for key in keys if key.startswith("data/table/")}
    assert keys - table == set(begun.base)
    assert len(table) == 1  # V4: one file, no leftovers of a committer
    assert next(iter(table)).endswith(".parquet")
    assert list(rig.left(begun, ended)) == []  # V7
