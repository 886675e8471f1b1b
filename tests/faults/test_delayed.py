"""A merge or reset held on the way, and let go after the next attempt has published (P11, V1, V3).

The attempt that sent it has long failed. ``hard``: the server refuses it, whatever it finds.
``head`` and ``lineage``: what is documented to happen is asserted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.faults import calls
from tests.faults.acts_of import after
from tests.faults.calls import Call, by_attempt
from tests.faults.conftest import NewRig
from tests.faults.paths import MODES, OnPath, selected
from tests.faults.proxy import Exchange, Hold, Proxy
from tests.faults.rig import BRANCH, Begun, Rig, kill_at
from tests.patience import LIMIT, scaled

PATIENCE_SECONDS = 2 * LIMIT


@dataclass(frozen=True)
class Case(OnPath):
    number: int
    call: Call
    path: str
    fence: str
    apart: bool = False
    hazard: str = ""

    def __str__(self) -> str:
        apart = " apart" if self.apart else ""
        return f"delayed/{self.call}/held/{self.path}{apart}-{self.fence}"

    @property
    def step(self) -> str:
        return f"d{self.number}"


UNION = (
    "V1, V4: the late merge lands on the completed publication, a union of both that nobody"
    " decided; the completed commit stays reachable"
)
TAKEN = (
    "V3: the late hard reset takes the place of the completed publication, which stays readable by"
    " its commit id only; the tree is whole"
)
CASES = [
    Case(0, calls.MERGE, "merge", "head"),
    Case(1, calls.MERGE, "merge", "lineage"),
    Case(2, calls.MERGE, "merge", "hard"),
    Case(3, calls.MERGE, "merge", "head", apart=True, hazard=UNION),
    Case(4, calls.MERGE, "merge", "lineage", apart=True, hazard=UNION),
    Case(5, calls.MERGE, "merge", "hard", apart=True),
    Case(6, calls.RESET, "replace", "head", hazard=TAKEN),
    Case(7, calls.MERGE, "replace", "lineage"),
    Case(8, calls.MERGE, "replace", "lineage", apart=True, hazard=UNION),
    Case(9, calls.MERGE, "replace", "hard"),
    Case(10, calls.RESET, "replace", "hard"),
    Case(11, calls.MERGE, "replace", "hard", apart=True),
    Case(12, calls.RESET, "relocate", "head"),
    Case(13, calls.MERGE, "relocate", "hard"),
    Case(14, calls.RESET, "relocate", "hard"),
]
CHOSEN = selected(CASES, lambda case: case.number in {3, 5, 6, 9, 10})


class Holding:
    """Holds every request of one kind that one attempt sends, until all are let go at once."""

    def __init__(self) -> None:
        self.held: list[Hold] = []

    def meet(self, exchange: Exchange) -> None:
        one = Hold()
        self.held.append(one)
        one.meet(exchange)

    def release(self) -> None:
        for one in self.held:
            one.release()


@pytest.fixture(scope="module")
def rig(new_rig: NewRig, proxy: Proxy) -> Rig:
    rig = new_rig(LAKECTL_SERVER_ENDPOINT_URL=proxy.url, ACTS_MERGE=str(scaled(3)))
    rig.work(2, kill_at((case.step, 0, "after publish") for case in CASES if case.victim))
    return rig


def delay(rig: Rig, proxy: Proxy, case: Case) -> tuple[Begun, Holding]:
    """Hold what the attempt sends, and wait for what the next one makes of it."""
    holding = Holding()
    if case.call is calls.MERGE:
        times, where = None, by_attempt(case.victim)
    else:  # A reset says nothing of who sends it; under ``head`` it is sent once.
        times, where = (1 if case.fence == "head" else 2), None

    def arrange(workspace: object) -> None:
        assert isinstance(workspace, dict)
        proxy.add(case.call.rule(holding, workspace["repository"], times, where))

    mode = MODES.get(case.path, "change")
    begun = rig.begin(case.step, case.fence, arrange, mode=mode, apart=case.apart)
    rig.completed(begun.workflow_id, PATIENCE_SECONDS)
    return begun, holding


@pytest.mark.parametrize("case", CHOSEN, ids=str)
def test_delayed(
    rig: Rig, proxy: Proxy, case: Case, record_property: Callable[[str, object], None]
) -> None:
    begun, holding = delay(rig, proxy, case)
    assert holding.held
    accepted = rig.workflow(begun.workflow_id)["tasks"][-1]["outputData"]["workspace"]["ref"]
    before = rig.store.head(begun.repository, BRANCH)
    assert before.id == accepted
    assert rig.findings(begun) == []
    holding.release()
    head = rig.store.head(begun.repository, BRANCH)
    if not case.hazard:
        assert head.id == accepted
        assert rig.findings(begun) == []
        return
    record_property("documented", case.hazard)
    assert head.metadata["perago.retry_count"] == str(case.victim)
    if case.apart:
        assert head.parents[0] == accepted
    else:
        assert accepted not in rig.history(begun.workspace)
        assert rig.store.commit(begun.repository, accepted).id == accepted  # P10
        listing = rig.store.listing(begun.repository, head.id, "")
        assert {info.key for info in listing} == set(after(begun.base, case.victim))  # V4
