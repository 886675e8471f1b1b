"""A completed step is never taken back, whoever is given its input again (P2a), on real stores."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from perago.attempt.fence import TRIES
from perago.errors import BrokerUnavailableError
from perago.protocol.paths import is_action
from perago.protocol.replacement import KIND
from perago.protocol.values import Attempt, Status
from perago.testing import FailAt, Lab, Run
from tests.model import tasks
from tests.model.labs import lab_on

STORES = ("embedded head", "embedded hard", "embedded lineage", "lakefs head", "lakefs hard")
TASKS: dict[str, Callable[..., Any]] = {
    "head": tasks.head,
    "hard": tasks.hard,
    "lineage": tasks.lineage,
}


@dataclass(frozen=True)
class Bench:
    lab: Lab
    fence: str

    def run(self, text: str, *faults: Any) -> Run:
        return self.lab.run(TASKS[self.fence], {"text": text}, faults=faults)

    def later(self, first: Run, text: str = "later", **changed: Any) -> Run:
        """Run a later step that was given what the first one was given."""
        step = replace(first.attempt, task_id=str(uuid.uuid4()), reference_task_name="later", seq=2)
        return self.given_again(first, replace(step, **changed), text)

    def given_again(self, first: Run, attempt: Attempt, text: str, *faults: Any) -> Run:
        deliver = self.lab._attempt  # noqa: SLF001 - a delivery that no workflow of ours would make
        return deliver(first.task, attempt, first.workspace, {"text": text}, faults)

    def assert_kept(self, first: Run) -> None:
        assert self.lab.head.id == first.ref
        assert "ws/first.txt" in self.files

    @property
    def files(self) -> set[str]:
        listing = self.lab.store.listing(self.lab.repository, self.lab.head.id, "")
        return {info.key for info in listing if not is_action(info.key)}


@pytest.fixture(params=STORES)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    kind, fence = request.param.split()
    with lab_on(kind, fence, request, tmp_path) as lab:
        yield Bench(lab, fence)


@pytest.mark.parametrize("text", ["later", ""], ids=["changes", "changes nothing"])
def test_p2a_a_later_step_with_the_same_input_is_refused(bench: Bench, text: str) -> None:
    first = bench.run("first")
    assert first.completed, first.reason
    later = bench.later(first, text)
    assert later.status is Status.FAILED
    assert "PublishFenceError" in later.reason
    bench.assert_kept(first)
    if bench.fence == "head":
        assert f"step {first.attempt.reference_task_name!r}" in later.reason
        assert f"${{{first.attempt.reference_task_name}.output.workspace}}" in later.reason


def test_p2a_a_retry_that_comes_after_its_step_was_completed_is_refused(bench: Bench) -> None:
    """The engine should never hand one out; if it does, what it accepted stays."""
    first = bench.run("first")
    again = replace(first.attempt, task_id=str(uuid.uuid4()), retry_count=1)
    assert bench.given_again(first, again, "again").status is Status.FAILED
    bench.assert_kept(first)


def test_p2_what_was_never_completed_is_replaced(bench: Bench) -> None:
    lost = bench.run("lost", FailAt("after publish"))
    assert "ws/lost.txt" in bench.files
    retried = bench.lab.retry(lost)
    assert retried.completed, retried.reason


def test_p2a_another_workflow_meets_what_the_engine_does_not_know(bench: Bench) -> None:
    unknown = bench.run("first", FailAt("after publish"))
    other = bench.later(unknown, workflow_instance_id=str(uuid.uuid4()))
    assert other.status is Status.FAILED
    assert "ws/first.txt" in bench.files
    if bench.fence == "head":
        assert "does not know" in other.reason


def test_f2_p2a_an_engine_that_cannot_say_how_the_other_task_ended_is_a_no(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = bench.run("first", FailAt("after publish"))
    published = bench.lab.head.id
    asked: list[str] = []

    def silent(task_id: str) -> str | None:
        asked.append(task_id)
        raise BrokerUnavailableError("no answer")

    monkeypatch.setattr(bench.lab.broker, "standing", silent)
    retried = bench.lab.retry(lost)
    assert retried.status is Status.FAILED
    assert "BrokerUnavailableError" in retried.reason
    assert asked == [lost.attempt.task_id] * TRIES
    assert bench.lab.head.id == published


def test_p2a_a_commit_of_ours_outside_attempts_is_not_an_abandoned_publication(
    bench: Bench,
) -> None:
    stale = bench.run("first", FailAt("before stage"))
    lab = bench.lab
    lab.store.put(lab.repository, "main", "ws/imported.txt", b"imported")
    lab.store.commit_branch(lab.repository, "main", "imported", {KIND: "import"})
    retried = lab.retry(stale)
    assert retried.status is Status.FAILED
    assert "ws/imported.txt" in bench.files
