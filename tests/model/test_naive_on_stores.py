"""The naive order, and the same pause in the right one, on real stores (F3, P8, K3, V1, V3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from perago.protocol.paths import is_action
from perago.protocol.values import Status
from perago.stores.embedded import EmbeddedStore
from perago.testing import FailAt, Lab, Run
from tests.model import tasks
from tests.model.labs import lab_on
from tests.model.meanwhile import Meanwhile, NaiveOrder, RightOrder

STORES = ("embedded head", "embedded hard", "lakefs head", "lakefs hard")


@dataclass(frozen=True)
class Bench:
    """A lab, the task that runs there, and whether the store itself compares the head."""

    lab: Lab
    task: Callable[..., Any]
    compares: bool

    def run(self, text: str, *faults: Any) -> Run:
        return self.lab.run(self.task, {"text": text}, faults=faults)

    @property
    def line(self) -> list[str]:
        """Return the target's first-parent history, newest first."""
        history = self.lab.store.history(self.lab.repository, "main")
        return [commit.id for commit in history]

    @property
    def files(self) -> set[str]:
        """Return what is visible on the branch, without the server's own actions."""
        listing = self.lab.store.listing(self.lab.repository, self.lab.head.id, "")
        return {info.key for info in listing if not is_action(info.key)}

    def assert_kept(self, ref: str | None) -> None:
        """V1, V3: what was accepted is the head, and nothing is above or beneath it but A."""
        assert self.lab.head.id == ref
        assert self.files == {"ws/all.txt", "other/kept.txt", "ws/second.txt"}


@pytest.fixture(params=STORES)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    kind, fence = request.param.split()
    task = tasks.own_hard if fence == "hard" else tasks.own
    with lab_on(kind, fence, request, tmp_path) as lab:
        yield Bench(lab, task, fence == "hard" or isinstance(lab.store, EmbeddedStore))


def accepted(run: Run | None) -> str:
    assert run is not None
    assert run.completed, run.reason
    assert run.lab.broker.reports[-1][0] == run.attempt
    assert run.ref
    return run.ref


def test_f3_the_naive_order_loses_a_completed_publication(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The history of ``test_naive_order.py``, for real; and no store can help it."""
    meanwhile = Meanwhile(bench.lab, bench.task, "second")
    monkeypatch.setattr(NaiveOrder, "pause", meanwhile, raising=False)
    monkeypatch.setattr("perago.attempt.lifecycle.AttemptFence", NaiveOrder)
    stale = bench.run("first", meanwhile)
    lost = accepted(meanwhile.retried)
    assert stale.events[-1] == "lost completion"  # R2: the engine did not want it.
    assert lost not in bench.line
    assert "ws/first.txt" in bench.files


def test_f3_the_same_pause_in_the_right_order_is_refused(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile = Meanwhile(bench.lab, bench.task, "second")
    monkeypatch.setattr(RightOrder, "pause", meanwhile, raising=False)
    monkeypatch.setattr(RightOrder, "asked", [], raising=False)
    monkeypatch.setattr("perago.attempt.lifecycle.AttemptFence", RightOrder)
    stale = bench.run("first", meanwhile)
    assert stale.status is Status.FAILED
    assert "branch moved from" in stale.reason
    bench.assert_kept(accepted(meanwhile.retried))


def test_f3_a_pause_after_the_second_read_before_a_merge(bench: Bench) -> None:
    """What remains open under ``head``: two results in one tree. ``hard`` refuses."""
    meanwhile = Meanwhile(bench.lab, bench.task, "second", "decision")
    a = bench.lab.head.id
    stale = bench.run("first", meanwhile)
    completed = accepted(meanwhile.retried)
    assert stale.status is Status.FAILED
    if bench.compares:
        assert "LostRaceError" in stale.reason
        bench.assert_kept(completed)
        return
    assert "cannot be verified" in stale.reason  # P5
    assert bench.line[1:3] == [completed, a]
    assert {"ws/first.txt", "ws/second.txt"} <= bench.files


def test_f3_a_pause_after_the_second_read_before_a_replacement(bench: Bench) -> None:
    """What remains open under ``head``: a completed publication is lost. ``hard`` refuses."""
    abandoned = bench.run("abandoned", FailAt("after publish"))
    meanwhile = Meanwhile(bench.lab, bench.task, "second", "decision")
    stale = bench.lab.retry(abandoned, faults=[meanwhile])
    completed = accepted(meanwhile.retried)
    if bench.compares:
        assert "LostRaceError" in stale.reason
        bench.assert_kept(completed)
        return
    assert stale.events[-1] == "lost completion"
    assert completed not in bench.line
