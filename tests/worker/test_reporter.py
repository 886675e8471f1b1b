"""Steps 13 to 15 by the supervisor: the lease is let go of first, and nothing stops the report."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from perago.clock import SystemClock
from perago.errors import EventLogError
from perago.ports import Journal
from perago.protocol.events import Event
from perago.protocol.outcome import Outcome
from perago.protocol.values import Attempt, AttemptSnapshot, Claim, Staging, Status
from perago.worker.post_mortem import CleanupConfig, DeadExecution, PostMortem
from perago.worker.reporter import Channels, Reporter
from perago.worker.runs import RunningExecution
from tests.patience import LIMIT

WORKSPACE = {"repository": "r", "branch": "main", "ref_type": "commit", "ref": "a" * 64}
CLAIM = Claim(Attempt("w", "t", 0, "step", "task"), {"workspace": WORKSPACE}, "e")


class Recorder:
    """Takes down what happens, in order; also a broker."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.over = threading.Event()

    def note(self, what: str) -> None:
        self.heard.append(what)

    def current(self, attempt: Attempt) -> AttemptSnapshot:
        raise NotImplementedError

    def standing(self, task_id: str) -> str | None:
        raise AssertionError("nothing is replaced here")

    def report(self, attempt: Attempt, outcome: Outcome) -> bool:
        self.note(f"report {outcome.status}")
        return True


class Broken:
    """A journal whose log cannot be written."""

    def event(self, event: Event) -> None:
        raise EventLogError("event log is full")

    def progress(self, phase: str, done: int, total: int) -> None:
        pass


def fail(_: Staging) -> None:
    raise ValueError("not one of our own errors")


def test_w4_the_lease_is_released_and_the_result_sent_whatever_the_log_and_the_store_do() -> None:
    record = Recorder()

    @contextmanager
    def journal(claim: Claim, say: Any) -> Iterator[Journal]:
        yield Broken()

    def reported(execution_id: str, outcome: Outcome, problem: str) -> None:
        record.note(problem or "no problem")
        record.over.set()

    reporter = Reporter(
        Channels(lambda *_: record, journal, fail),
        SystemClock(),
        1,
        lambda *_: None,
        reported,
        lambda _: None,
    )
    run = RunningExecution(CLAIM, "w", 0.0, left=Staging("r", "perago-staging-x"))
    reporter.report(run, Outcome(Status.COMPLETED), lambda: record.note("released"))
    assert record.over.wait(LIMIT)
    assert record.heard == ["released", "report COMPLETED", "no problem"]
    assert reporter.close(LIMIT)


@pytest.mark.parametrize("drop", [None, fail], ids=["plain", "cleanup fails"])
def test_r3_a_dead_execution_is_reported_after_its_lease_was_released(
    tmp_path: Path, drop: Any
) -> None:
    record = Recorder()
    cleanup = CleanupConfig(tmp_path, 60.0, drop, lambda *_: record, 500)
    post_mortem = PostMortem(cleanup, SystemClock(), lambda *_: None)
    dead = DeadExecution(CLAIM, "w", "executor died in body: exit code 3")
    post_mortem.settle(dead, lambda: record.note("released"))
    assert post_mortem.close(30)
    assert record.heard == ["released", "report FAILED"]
