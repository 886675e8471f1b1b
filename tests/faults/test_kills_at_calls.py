"""kill -9 while a request is on its way: sent, or applied and never answered.

The journal has no points inside a call; a proxy in front of lakeFS has. It finds out which
executor holds the other end of the connection, and kills that one. The last request of an
attempt, which removes its private branch, is the supervisor's.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from tests.faults import calls
from tests.faults.calls import Call, by_attempt, sender
from tests.faults.campaign import Campaign, cases_of
from tests.faults.conftest import NewRig
from tests.faults.paths import MODES, OnPath, selected
from tests.faults.proxy import Exchange, Proxy
from tests.faults.rig import Begun, Rig, children, kill_at
from tests.patience import LIMIT
from tests.worker.stage import Worker, eventually

EXECUTORS = 3
PATIENCE_SECONDS = 2 * LIMIT


@dataclass(frozen=True)
class Case(OnPath):
    number: int
    call: Call
    applied: bool
    path: str
    fence: str

    def __str__(self) -> str:
        how = "applied" if self.applied else "sent"
        return f"kill/{self.call} {how}/SIGKILL/{self.path}-{self.fence}"

    @property
    def step(self) -> str:
        return f"c{self.number}"


def every_case() -> list[Case]:
    lines: list[tuple[Call, str, str]] = []
    for fence in FENCES:
        every = (*calls.READS, *calls.WRITES)
        lines += [
            (call, "merge", fence)
            for call in every
            if call is not calls.DROP and (call not in calls.EARLY or fence == "hard")
        ]
    lines += [(calls.RESET, path, fence) for path in MOVED for fence in ("head", "hard")]
    lines += [(calls.MERGE, path, "hard") for path in MOVED]
    lines.append((calls.MERGE, "replace", "lineage"))
    return sent_and_applied(lines)


def sent_and_applied(lines: Sequence[tuple[Call, str, str]]) -> list[Case]:
    both = [
        (call, applied, path, fence) for call, path, fence in lines for applied in (False, True)
    ]
    return [Case(number, *line) for number, line in enumerate(both)]


MOVED = ("replace", "relocate")
FENCES = ("head", "lineage", "hard")
CASES = every_case()
QUICK = {calls.CREATE, calls.UPLOAD, calls.COMMIT, calls.MERGE, calls.RESET}
CHOSEN = selected(CASES, lambda case: case.applied and case.call in QUICK and case.fence == "hard")


@dataclass
class Kill:
    """The sender dies with this request on its way; only the first one."""

    worker: Worker
    applied: bool
    done: bool = False

    def meet(self, exchange: Exchange) -> None:
        victim = sender(exchange, children(self.worker))
        if self.applied:
            exchange.forward()
        os.kill(victim, signal.SIGKILL)
        self.done = True
        exchange.reset()


@pytest.fixture(scope="module")
def rig(new_rig: NewRig, proxy: Proxy) -> Rig:
    rig = new_rig(LAKECTL_SERVER_ENDPOINT_URL=proxy.url)
    abandoned = [(case.step, 0, "after publish") for case in CASES if case.victim]
    rig.work(EXECUTORS, kill_at(abandoned))
    return rig


@pytest.fixture(scope="module")
def campaign(request: pytest.FixtureRequest, rig: Rig, proxy: Proxy) -> Campaign[Case]:
    def begin(case: Case) -> Begun:
        fault = Kill(rig.workers[0], case.applied)
        of_victim = by_attempt(case.victim) if case.call is calls.MERGE else None

        def arrange(workspace: object) -> None:
            assert isinstance(workspace, dict)
            proxy.add(case.call.rule(fault, workspace["repository"], where=of_victim))

        return rig.begin(case.step, case.fence, arrange, mode=MODES.get(case.path, "change"))

    order = cases_of(request, test_kill_at_call.__name__, Case)
    return Campaign(order, begin, ahead=6)


@pytest.mark.parametrize("case", CHOSEN, ids=str)
def test_kill_at_call(rig: Rig, campaign: Campaign[Case], case: Case) -> None:
    begun = campaign.take(case)
    ended = rig.completed(begun.workflow_id, PATIENCE_SECONDS)
    assert rig.statuses(begun) == ["FAILED"] * (case.victim + 1) + ["COMPLETED"]
    assert "killed by SIGKILL" in ended["tasks"][case.victim]["reasonForIncompletion"]
    assert rig.findings(begun) == []


# --- the supervisor: it removes the private branch, then it reports -------------------------------

DROPS = sent_and_applied([(calls.DROP, "merge", fence) for fence in FENCES])
DROPS_CHOSEN = selected(DROPS, lambda case: not case.applied and case.fence == "hard")


@dataclass
class KillWorker:
    """The worker that is named until then dies as a whole."""

    applied: bool
    worker: Worker | None = None

    def meet(self, exchange: Exchange) -> None:
        if self.applied:
            exchange.forward()
        assert self.worker is not None
        self.worker.process.kill()
        exchange.reset()


@pytest.fixture(scope="module")
def hasty(new_rig: NewRig, proxy: Proxy) -> Rig:
    """Give a rig whose leases are over soon."""
    return new_rig(3, LAKECTL_SERVER_ENDPOINT_URL=proxy.url)


@pytest.mark.parametrize("case", DROPS_CHOSEN, ids=str)
def test_kill_of_the_supervisor_at_call(hasty: Rig, proxy: Proxy, case: Case) -> None:
    fault = KillWorker(case.applied)

    def arrange(workspace: Mapping[str, str]) -> None:
        proxy.add(case.call.rule(fault, workspace["repository"]))

    begun = hasty.begin(f"d{case.number}", case.fence, arrange)
    fault.worker = first = hasty.work(1, ready=False)
    eventually(lambda: first.process.poll() is not None, "the death of the worker")
    second = hasty.work(1)
    hasty.given_up(begun.workflow_id, PATIENCE_SECONDS)
    assert hasty.short_leases(begun) == ["TIMED_OUT", "COMPLETED"]
    # What a dead supervisor did not get to remove is left to ``perago gc`` (W5).
    eventually(lambda: hasty.findings(begun, swept=case.applied) == [], "a clean end")
    assert second.stop() == 0
