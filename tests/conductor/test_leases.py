"""A heartbeat must not cross the result: the server keeps no lock between reading and writing a
task, so an extension under way can turn an accepted completion back (W4, R2)."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from perago.brokers.conductor.broker import ConductorBroker
from perago.brokers.conductor.client import ConductorClient
from perago.clock import SystemClock
from perago.protocol.values import Claim
from perago.settings import ConductorSettings
from perago.worker.leasing import LeaseKeeper
from tests.conductor.lab import DONE, Lab, eventually
from tests.faults.proxy import Hold, Proxy, Rule, Seen
from tests.patience import LIMIT

WORKER = "worker-0001"


def extends(seen: Seen) -> bool:
    return b"extendLease" in seen.body


@pytest.fixture
def keeper(proxy: Proxy) -> Iterator[LeaseKeeper]:
    client = ConductorClient(ConductorSettings(proxy.url), call_seconds=60)
    lost: list[str] = []
    keeper = LeaseKeeper(client, SystemClock(), lambda *said: lost.append(str(said)), print)
    yield keeper
    keeper.close(10)
    client.close()
    assert lost == []


def beaten(keeper: LeaseKeeper, proxy: Proxy, claim: Claim) -> None:
    """Hold a lease until a heartbeat is under way at the proxy."""
    keeper.hold(claim, WORKER, 0.2)
    eventually(lambda: [seen for seen in proxy.matching("POST") if extends(seen)], "a heartbeat")


def test_w4_a_lease_is_let_go_of_only_when_no_heartbeat_is_under_way(
    lab: Lab, proxy: Proxy, keeper: LeaseKeeper, truth: ConductorClient
) -> None:
    claim = lab.claim()
    held = Hold()
    released = threading.Event()

    def complete() -> None:
        keeper.release(claim.execution_id, 60)
        released.set()
        ConductorBroker(truth, SystemClock(), WORKER, 60).report(claim.attempt, DONE)

    with proxy.during(Rule(held, "POST", r"/api/tasks$", where=extends)):
        beaten(keeper, proxy, claim)
        reporting = threading.Thread(target=complete)
        reporting.start()
        assert not released.wait(1)  # while its heartbeat is held
        assert lab.status(claim.attempt) == "IN_PROGRESS"
        held.release()
        reporting.join(LIMIT)
    assert released.is_set()
    assert lab.status(claim.attempt) == "COMPLETED"
    sent = len([seen for seen in proxy.matching("POST") if extends(seen)])
    assert not threading.Event().wait(1)  # As long as five heartbeats would take.
    assert len([seen for seen in proxy.matching("POST") if extends(seen)]) == sent


def test_w4_a_heartbeat_that_read_the_task_before_sends_nothing_after(
    lab: Lab, proxy: Proxy, keeper: LeaseKeeper
) -> None:
    claim = lab.claim()
    held = Hold()
    with proxy.during(Rule(held, "GET", r"/api/tasks/[0-9a-f-]{36}$")):
        keeper.hold(claim, WORKER, 0.2)
        eventually(lambda: proxy.matching("GET", r"/api/tasks/[0-9a-f-]{36}$"), "a heartbeat")
        keeper.release(claim.execution_id, 0.1)  # Whoever cannot wait is still not crossed.
        held.release()
    keeper.close(10)
    assert [seen for seen in proxy.matching("POST") if extends(seen)] == []
