from __future__ import annotations

import os
from pathlib import Path

from perago.process.reports import Finished, Message, Report, StartFailed
from perago.process.threads import ThreadPool
from perago.protocol.values import Status
from tests.patience import LIMIT, Deadline, until
from tests.process import executors
from tests.process.executors import claim


def idle(pool: ThreadPool, count: int = 1) -> tuple[str, ...]:
    pool.want(count)
    deadline = Deadline()
    while len(pool.idle) < count:
        assert not deadline.over
        pool.poll(1)
    return pool.idle


def reports_until(pool: ThreadPool, kind: type[Report], count: int = 1) -> list[Report]:
    deadline = Deadline()
    found: list[Report] = []
    while sum(isinstance(report, kind) for report in found) < count:
        assert not deadline.over
        found += pool.poll(1)
    return found


def test_claims_run_in_this_process() -> None:
    with ThreadPool(executors.work, 2) as pool:
        for number, executor_id in enumerate(idle(pool, 2)):
            pool.submit(claim(f"e{number}", say=[1]), executor_id)
        reports = reports_until(pool, Finished, 2)
        assert {
            report.outcome.output["pid"] for report in reports if isinstance(report, Finished)
        } == {os.getpid()}
        messages = [report for report in reports if isinstance(report, Message)]
        assert {message.execution_id for message in messages} == {"e0", "e1"}


def test_a_failure_does_not_end_the_thread() -> None:
    with ThreadPool(executors.work, 1) as pool:
        for number in range(3):
            pool.submit(claim(f"e{number}", **{"raise": 1}), idle(pool)[0])
            (report,) = reports_until(pool, Finished)
            assert isinstance(report, Finished)
            assert report.outcome.status is Status.FAILED


def test_kill_abandons_and_another_takes_the_place(tmp_path: Path) -> None:
    gate, done = tmp_path / "gate", tmp_path / "done"
    with ThreadPool(executors.work, 1) as pool:
        pool.submit(claim("e1", wait_for=str(gate), touch=str(done)), idle(pool)[0])
        reports_until(pool, Message)
        assert pool.kill("e1")
        assert not pool.kill("e1")
        pool.submit(claim("e2", n=1), idle(pool)[0])
        (report,) = reports_until(pool, Finished)
        assert isinstance(report, Finished)
        assert report.execution_id == "e2"
        gate.touch()
        until(done.exists, "the end of what was abandoned")
        assert pool.poll(0.1) == []


def test_work_that_cannot_be_made_is_one_clear_error() -> None:
    with ThreadPool(executors.import_error, 1) as pool:
        pool.want(1)
        (failed,) = reports_until(pool, StartFailed)
        assert isinstance(failed, StartFailed)
        assert "No module named" in str(failed.error)


def test_wake_and_close() -> None:
    pool = ThreadPool(executors.work, 1)
    pool.wake()
    assert pool.poll(LIMIT) == []
    pool.submit(claim("e1", sleep=30), idle(pool)[0])
    pool.close(0.1)
