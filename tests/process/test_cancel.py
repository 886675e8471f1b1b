"""Telling an execution that nobody wants it, in both kinds of pool (W4)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from perago.process.pool import ProcessPool
from perago.process.reports import Finished, Message, Report, WatchedExecutors
from perago.process.threads import ThreadPool
from perago.tasks.cancellation import CancellationToken, cancelled, current, holding, on_cancel
from tests.patience import Deadline
from tests.process import executors
from tests.process.executors import claim

R = TypeVar("R", bound=Report)


@pytest.fixture(params=["process", "thread"])
def pool(request: pytest.FixtureRequest) -> Iterator[WatchedExecutors]:
    made: WatchedExecutors = (
        ProcessPool(executors.work, 2)
        if request.param == "process"
        else ThreadPool(executors.work, 2)
    )
    yield made
    made.close()


def idle(pool: WatchedExecutors, count: int) -> tuple[str, ...]:
    pool.want(count)
    deadline = Deadline()
    while len(pool.idle) < count:
        assert not deadline.over
        pool.poll(1)
    return pool.idle


def reported(pool: WatchedExecutors, kind: type[R]) -> R:
    deadline = Deadline()
    while not deadline.over:
        found: list[Report] = pool.poll(1)
        for report in found:
            if isinstance(report, kind):
                return report
    raise AssertionError


def test_a_running_execution_hears_that_it_is_cancelled(
    pool: WatchedExecutors, tmp_path: Path
) -> None:
    (one, _) = idle(pool, 2)
    pool.submit(claim("e1", until_cancelled=str(tmp_path / "hook")), one)
    reported(pool, Message)
    assert pool.cancel("e1")
    assert reported(pool, Finished).outcome.completed
    assert (tmp_path / "hook").exists(), "a hook is called as well"
    pool.submit(claim("e2", not_cancelled=1), one)
    assert reported(pool, Finished).outcome.completed, "the next claim has a token of its own"


def test_cancelling_what_does_not_run_here_does_nothing(pool: WatchedExecutors) -> None:
    idle(pool, 1)
    assert not pool.cancel("e9")
    assert not pool.cancel("")


def test_an_executor_that_is_ended_is_replaced_at_its_place(pool: WatchedExecutors) -> None:
    (first, second) = idle(pool, 2)
    assert [seen.number for seen in pool.look()] == [1, 2]
    assert pool.end(first)
    assert not pool.end(first)
    again = idle(pool, 2)
    assert second in again
    assert first not in again
    assert sorted(seen.number for seen in pool.look()) == [1, 2]


def test_a_busy_executor_gives_signs_of_life() -> None:
    with ProcessPool(executors.work, 1) as pool:
        (one,) = idle(pool, 1)
        pool.submit(claim("e1", sleep=600), one)
        reported(pool, Message)
        (begun,) = pool.look()
        deadline = Deadline()
        while pool.look()[0].heard == begun.heard:
            assert not deadline.over
            pool.poll(0.2)
        (seen,) = pool.look()
        assert pool.kill("e1")
        assert (seen.attempts, seen.execution_id) == (1, "e1")


# --- the token itself ---------------------------------------------------------------------------


def test_outside_an_attempt_nothing_is_cancelled() -> None:
    assert current() is None
    assert not cancelled()
    on_cancel(lambda: pytest.fail("there is nothing to cancel"))


@pytest.mark.parametrize("whole_process", [True, False])
def test_the_token_is_current_while_it_is_held(whole_process: bool) -> None:
    token = CancellationToken()
    seen: list[bool] = []
    with holding(token, whole_process=whole_process):
        token.cancel()
        assert cancelled()
        thread = threading.Thread(target=lambda: seen.append(cancelled()))
        thread.start()
        thread.join()
    assert seen == [whole_process], "threads of a body see it where a process runs one attempt"
    assert not cancelled()


def test_hooks_are_called_once_and_none_keeps_the_others() -> None:
    token, called = CancellationToken(), list[int]()
    token.on_cancel(lambda: 1 / 0)  # type: ignore[arg-type]
    token.on_cancel(lambda: called.append(1))
    token.cancel()
    token.cancel()
    token.on_cancel(lambda: called.append(2))
    assert called == [1, 2]
