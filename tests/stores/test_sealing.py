"""The staging commit is waited for as long as the attempt has time (S4, P6)."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from perago.errors import (
    OutcomeUnknownError,
    StaleAttemptError,
    StoreError,
    StoreUnavailableError,
)
from perago.ports import Patience
from perago.protocol.budget import Budget, commit_seconds
from perago.protocol.values import Commit
from perago.stores.lakefs import sealing
from perago.stores.lakefs.client import Ask

ASK = Ask("commit staging branch", "POST", "/x")
OURS = Commit("c", ("a",), "m", {"perago.execution_id": "e"})
BASE = Commit("a", (), "m", {})


class Server:
    """Commits, on a clock of its own; what it answers is said by the test."""

    def __init__(self, lands_at: float, answer: Callable[[Server, float], None]) -> None:
        self.now = 0.0
        self.lands_at = lands_at
        self.asked: list[float] = []
        self._answer = answer

    def commit(self, ask: Ask) -> Commit:
        self.asked.append(ask.timeout_seconds)
        self._answer(self, ask.timeout_seconds)
        return OURS

    def head(self, seconds: float) -> Commit:
        return OURS if self.now >= self.lands_at else BASE

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    @property
    def branch(self) -> sealing.StagingBranch:
        return sealing.StagingBranch(self.commit, self.head, "e")


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[Server], None]:
    def use(server: Server) -> None:
        monkeypatch.setattr(time, "monotonic", lambda: server.now)
        monkeypatch.setattr(time, "sleep", server.sleep)

    return use


Clock = Callable[[Server], None]


def silent(server: Server, seconds: float) -> None:
    server.now += seconds
    raise OutcomeUnknownError("no answer")


def gone(server: Server, seconds: float) -> None:
    raise OutcomeUnknownError("connection refused")


def cut_by_a_proxy(server: Server, seconds: float) -> None:
    server.now += min(seconds, 60.0)
    raise OutcomeUnknownError("504")


def busy(server: Server, seconds: float) -> None:
    if len(server.asked) == 1:
        silent(server, seconds)
    raise StoreError("400 (commit: no changes)")


@pytest.mark.parametrize("answer", [silent, cut_by_a_proxy, busy])
def test_p6_a_commit_of_ten_minutes_is_found(
    clock: Clock, answer: Callable[[Server, float], None]
) -> None:
    server = Server(600.0, answer)
    clock(server)
    assert sealing.seal(server.branch, ASK, Patience(3600.0)) is OURS
    assert server.now < 1300.0


def test_p6_each_request_has_more_time_than_the_one_before(clock: Clock) -> None:
    server = Server(10_000.0, silent)
    clock(server)
    with pytest.raises(OutcomeUnknownError):
        sealing.seal(server.branch, ASK, Patience(400.0))
    assert server.asked[:3] == [30.0, 60.0, 120.0]
    assert 400.0 <= server.now <= 420.0


def test_p11_a_server_out_of_reach_is_looked_for_until_the_margin_is_over(clock: Clock) -> None:
    server = Server(10_000.0, gone)
    clock(server)
    with pytest.raises(OutcomeUnknownError, match="refused"):
        sealing.seal(server.branch, ASK, Patience(3600.0, margin_seconds=20.0))
    assert len(server.asked) == sealing.QUICK_TRIES
    assert 20.0 <= server.now <= 30.0
    late = Server(15.0, gone)
    clock(late)
    assert sealing.seal(late.branch, ASK, Patience(3600.0, margin_seconds=20.0)) is OURS


def test_section_10_a_refusal_without_a_doubt_is_final(clock: Clock) -> None:
    def refuse(server: Server, seconds: float) -> None:
        raise StoreError("403")

    server = Server(10_000.0, refuse)
    clock(server)
    with pytest.raises(StoreError, match="403"):
        sealing.seal(server.branch, ASK, Patience(3600.0))
    assert (len(server.asked), server.now) == (1, 0.0)


def test_w4_an_attempt_that_was_lost_waits_no_longer(clock: Clock) -> None:
    server = Server(10_000.0, silent)
    clock(server)

    def check() -> None:
        if server.now >= 30.0:
            raise StaleAttemptError("lost")

    with pytest.raises(StaleAttemptError):
        sealing.seal(server.branch, ASK, Patience(3600.0, check=check))
    assert len(server.asked) == 1


def test_p6_a_head_that_cannot_be_read_proves_nothing(clock: Clock) -> None:
    server = Server(100.0, silent)
    clock(server)

    def unreadable(seconds: float) -> Commit:
        if server.now < 100.0:
            raise StoreUnavailableError("down")
        return OURS

    branch = sealing.StagingBranch(server.commit, unreadable, "e")
    assert sealing.seal(branch, ASK, Patience(3600.0)) is OURS


def test_t5_the_time_of_a_commit_is_that_of_the_attempt() -> None:
    budget = Budget()
    assert commit_seconds(budget, 600.0, 7200.0) == 7200.0
    assert commit_seconds(budget, 600.0, 1.0) == budget.lakefs_merge_timeout_seconds
    assert commit_seconds(budget, 600.0, float("inf")) == 600.0
    assert commit_seconds(budget, 10.0, float("inf")) == budget.lakefs_merge_timeout_seconds
    assert commit_seconds(budget, 0.0, float("inf")) == 3600.0
