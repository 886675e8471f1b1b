"""Every call of a worker on a network that goes wrong, with real Conductor and real lakeFS.

One request of a workflow is spoiled. The workflow completes: at once where a call may be sent
again or its fate can be read, after a retry where it cannot (the table of ``faults.md``).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.faults import calls
from tests.faults.calls import Call, by_attempt
from tests.faults.campaign import Campaign, cases_of
from tests.faults.conftest import NewRig
from tests.faults.paths import MODES, OnPath, selected
from tests.faults.proxy import (
    Drip,
    Exchange,
    Fault,
    Hang,
    LoseAnswer,
    Proxy,
    ResetBefore,
    Rule,
    Say,
    Seen,
    Truncate,
)
from tests.faults.rig import Begun, Rig, kill_at
from tests.patience import LIMIT, scaled
from tests.worker.stage import eventually

PATIENCE_SECONDS = 2 * LIMIT
AWAY_SECONDS = 1.0
RESPONSE_SECONDS = math.ceil(scaled(12))

Statuses = list[str]
ONCE: Statuses = ["COMPLETED"]
AGAIN: Statuses = ["FAILED", "COMPLETED"]


class Refuse:
    """The server is away for a moment: this connection breaks, and new ones are refused."""

    def meet(self, exchange: Exchange) -> None:
        exchange.proxy.down()
        threading.Timer(AWAY_SECONDS, exchange.proxy.up).start()


FAULTS: dict[str, Callable[[], Fault]] = {
    "refused": Refuse,
    "reset": ResetBefore,
    "lost": LoseAnswer,
    "hang": Hang,
    "500": lambda: Say(500),
    "503": lambda: Say(503),
    "429": lambda: Say(429),
    "truncated": lambda: Truncate(2),
    "dripping": lambda: Drip(64, 0.01),
}
APPLIED = {"lost", "truncated", "dripping"}


# --- lakeFS ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case(OnPath):
    number: int
    call: Call
    fault: str
    path: str
    fence: str

    def __str__(self) -> str:
        return f"network/{self.call}/{self.fault}/{self.path}-{self.fence}"

    @property
    def step(self) -> str:
        return f"n{self.number}"

    @property
    def expected(self) -> list[Statuses]:
        """Say how the attempts may end that meet the fault."""
        if self.fault == "refused":  # It may be back before the last try, or not.
            return [ONCE, AGAIN]
        if self.fault == "dripping":
            return [ONCE]
        if self.call is calls.CREATE:  # S4
            return [AGAIN]
        soft = self.call in MOVES and self.fence != "hard"
        if self.fault == "hang" and not soft and self.call in MOVES:
            return [ONCE, AGAIN]  # Bounded by the budget, which one hang may use up.
        if self.call in MOVES and self.fault == "429":
            # P8; a second half is completed by whoever meets it (K3).
            return [AGAIN, ONCE] if self.call is calls.RESET else [AGAIN]
        return [AGAIN] if soft and self.fault not in APPLIED else [ONCE]


def every_case() -> list[Case]:
    lines = [(call, "merge", "head") for call in (*calls.READS, *calls.WRITES)]
    lines += [(calls.MERGE, "merge", "lineage"), (calls.MERGE, "merge", "hard")]
    lines += [(calls.MERGE, "replace", "lineage"), (calls.MERGE, "replace", "hard")]
    lines += [(calls.RESET, path, fence) for path in MOVED for fence in ("head", "hard")]
    cases = [(call, fault, path, fence) for call, path, fence in lines for fault in FAULTS]
    return [Case(number, *line) for number, line in enumerate(cases)]


MOVED = ("replace", "relocate")
MOVES = {calls.MERGE, calls.RESET}
CASES = every_case()
APART = [case for case in CASES if case.fault != "refused"]
QUICK = {calls.CREATE, calls.COMMIT, calls.MERGE, calls.RESET}
CHOSEN = selected(APART, lambda case: case.fault == "lost" and case.call in QUICK)
REFUSED = selected(
    [case for case in CASES if case.fault == "refused"],
    lambda case: (case.call, case.fence) == (calls.MERGE, "head"),
)


@pytest.fixture(scope="module")
def rig(new_rig: NewRig, proxy: Proxy) -> Rig:
    rig = new_rig(LAKECTL_SERVER_ENDPOINT_URL=proxy.url, ACTS_MERGE=str(scaled(5)))
    rig.work(5, kill_at((case.step, 0, "after publish") for case in CASES if case.victim))
    return rig


def begin(rig: Rig, proxy: Proxy, case: Case) -> Begun:
    fault = FAULTS[case.fault]()
    of_victim = by_attempt(case.victim) if case.call is calls.MERGE else None

    def arrange(workspace: object) -> None:
        assert isinstance(workspace, dict)
        proxy.add(case.call.rule(fault, workspace["repository"], where=of_victim))

    return rig.begin(case.step, case.fence, arrange, mode=MODES.get(case.path, "change"))


@pytest.fixture(scope="module")
def campaign(request: pytest.FixtureRequest, rig: Rig, proxy: Proxy) -> Campaign[Case]:
    order = cases_of(request, test_lakefs.__name__, Case)
    return Campaign(order, lambda case: begin(rig, proxy, case), ahead=12)


@pytest.mark.parametrize("case", CHOSEN, ids=str)
def test_lakefs(rig: Rig, campaign: Campaign[Case], case: Case) -> None:
    check(rig, campaign.take(case), case)


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_lakefs_refused(rig: Rig, proxy: Proxy, case: Case) -> None:
    """One by one: a server that is away is away for all."""
    check(rig, begin(rig, proxy, case), case)


def check(rig: Rig, begun: Begun, case: Case) -> None:
    rig.completed(begun.workflow_id, PATIENCE_SECONDS)
    assert rig.statuses(begun)[case.victim :] in case.expected
    # A branch whose removal was never answered is named, and swept (V7).
    swept = case.call is not calls.DROP and case.fault != "refused"
    if not swept:
        done = rig.perago("gc", "--repo", begun.repository, "--delete")
        assert done.returncode == 0, done.stdout + done.stderr
    assert rig.findings(begun) == []


# --- Conductor ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """A request to Conductor."""

    name: str
    method: str
    path: str
    said: bytes = b""

    def rule(self, fault: Fault, times: int | None = 1) -> Rule:
        return Rule(fault, self.method, self.path, times=times, where=self._where)

    def _where(self, seen: Seen) -> bool:
        return self.said in seen.body

    def __str__(self) -> str:
        return self.name


POLL = Kind("poll", "GET", r"/api/tasks/poll/batch/head_")
EXTEND = Kind("extend lease", "POST", r"/api/tasks$", b"extendLease")
GET_TASK = Kind("get task", "GET", r"/api/tasks/[0-9a-f-]{36}$")
UPDATE = Kind("update task", "POST", r"/api/tasks$", b'"COMPLETED"')


@dataclass
class OnWork:
    """Meets polls; the fault is for the first one that brings a task."""

    fault: Fault
    done: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def meet(self, exchange: Exchange) -> None:
        with self.lock:
            answer = exchange.forward()
            mine = not self.done and answer.body.strip() != b"[]"
            self.done = self.done or mine
        exchange.spared(not mine)
        if mine:
            exchange.forward = lambda: answer  # type: ignore[method-assign]
            self.fault.meet(exchange)
        else:
            exchange.reply(answer)


@dataclass(frozen=True)
class Asked:
    number: int
    kind: Kind
    fault: str

    def __str__(self) -> str:
        return f"network/{self.kind}/{self.fault}/merge-head"

    @property
    def step(self) -> str:
        return f"q{self.number}"

    @property
    def expected(self) -> list[Statuses]:
        lost = ["TIMED_OUT", "COMPLETED"]
        if self.kind is POLL and self.fault in {"lost", "truncated"}:
            return [lost]  # V5: handed out to nobody, it comes back.
        if self.kind is EXTEND and self.fault == "hang":
            return [ONCE, lost]  # The lease may be over before the question is given up.
        return [ONCE]


KINDS = (POLL, EXTEND, GET_TASK, UPDATE)
ASKED = [
    Asked(number, kind, fault)
    for number, (kind, fault) in enumerate((kind, fault) for kind in KINDS for fault in FAULTS)
]
ASKED_CHOSEN = selected(ASKED, lambda case: case.fault == "lost" and case.kind is not POLL)


@pytest.fixture(scope="module")
def asking(new_rig: NewRig, conductor: Proxy) -> Rig:
    rig = new_rig(RESPONSE_SECONDS, CONDUCTOR_SERVER_URL=f"{conductor.url}/api")
    rig.work(2)
    return rig


@pytest.mark.parametrize("case", ASKED_CHOSEN, ids=str)
def test_conductor(asking: Rig, conductor: Proxy, case: Asked) -> None:
    """One by one: a question does not say which workflow it is for."""
    fault = FAULTS[case.fault]()
    on_work = case.kind is POLL and case.fault in APPLIED
    rule = case.kind.rule(OnWork(fault) if on_work else fault, times=None if on_work else 1)
    wait = case.kind is EXTEND
    with conductor.during(rule):
        begun = asking.begin(case.step, "head", wait=wait)
        if wait:
            eventually(lambda: rule.met, "a heartbeat", PATIENCE_SECONDS)
            Path(asking.directory / f"{case.step}.go").touch()
        asking.completed(begun.workflow_id, PATIENCE_SECONDS)
    assert rule.met
    assert asking.statuses(begun) in case.expected
    assert asking.findings(begun) == []
