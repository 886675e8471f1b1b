from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from perago.errors import RuntimeConfigError, TaskDefinitionError, UsageError
from perago.process.lock import await_gone
from perago.process.pool import ProcessPool, describe_exit
from perago.process.reports import (
    Died,
    Finished,
    Make,
    Message,
    Output,
    Report,
    StartFailed,
)
from perago.protocol import restart
from perago.protocol.values import Status
from tests.patience import LIMIT, Deadline, until
from tests.process import executors
from tests.process.executors import claim

Pool = Callable[..., ProcessPool]


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    made: list[ProcessPool] = []

    def make(make: Make = executors.work, size: int = 1, **options: bool) -> ProcessPool:
        made.append(ProcessPool(make, size, lock_directory=tmp_path / "locks", **options))
        return made[-1]

    yield make
    for one in made:
        pids = one.pids
        one.close()
        assert not any(alive(pid) for pid in pids)
    assert not list((tmp_path / "locks").glob("*"))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def idle(pool: ProcessPool, count: int = 1) -> tuple[str, ...]:
    pool.want(count)
    deadline = Deadline()
    while len(pool.idle) < count:
        assert not deadline.over
        assert not pool.poll(1)
    return pool.idle


def reports_until(pool: ProcessPool, kind: type[Report], count: int = 1) -> list[Report]:
    deadline = Deadline()
    found: list[Report] = []
    while sum(isinstance(report, kind) for report in found) < count:
        assert not deadline.over, found
        found += pool.poll(1)
    return found


def run(pool: ProcessPool, execution_id: str = "e1", **given: object) -> Finished:
    (executor_id, *_) = idle(pool)
    pool.submit(claim(execution_id, **given), executor_id)
    (*_, last) = reports_until(pool, Finished)
    assert isinstance(last, Finished)
    return last


def test_a_claim_is_run_in_another_process_which_is_kept(pool: Pool) -> None:
    one = pool()
    first, second = run(one, "e1", n=1), run(one, "e2", n=2)
    assert first.outcome.output == {"pid": one.pids[0], "in": {"n": 1}}
    assert second.outcome.output["pid"] == one.pids[0] != os.getpid()
    assert (first.execution_id, second.execution_id) == ("e1", "e2")


def test_nothing_is_started_before_it_is_wanted(pool: Pool) -> None:
    one = pool(size=3)
    assert one.pids == ()
    one.want(2)
    assert len(one.pids) == 2
    one.want(9)
    assert len(one.pids) == 3


def test_messages_arrive_in_order_with_their_execution(pool: Pool) -> None:
    one = pool()
    (executor_id,) = idle(one)
    one.submit(claim("e1", say=list(range(50)), say_from_threads=20, big=1_000_000), executor_id)
    reports = reports_until(one, Finished)
    messages = [report for report in reports if isinstance(report, Message)]
    assert all(message.execution_id == "e1" for message in messages)
    assert [message.body.get("item") for message in messages[:50]] == list(range(50))
    assert {message.body.get("item") for message in messages[50:70]} == set(range(20))
    assert len(str(messages[70].body["bytes"])) == 1_000_000


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"raise": 1}, "executor: RuntimeError: out of order"),
        ({"system_exit": 0}, "executor: SystemExit: 0"),
    ],
)
def test_what_escapes_from_the_work_is_a_failure(
    pool: Pool, given: dict[str, Any], reason: str
) -> None:
    one = pool()
    finished = run(one, **given)
    assert finished.outcome.status is Status.FAILED
    assert finished.outcome.reason.startswith(reason)
    assert run(one, "e2", n=1).outcome.completed


def test_what_is_said_is_plain_data(pool: Pool) -> None:
    """What JSON has no word for arrives as text; nothing of the body is made or called here."""
    one = pool()
    (executor_id,) = idle(one)
    one.submit(claim("e1", unpicklable=1), executor_id)
    said, ended = reports_until(one, Finished)
    assert isinstance(said, Message)
    assert str(said.body["function"]).startswith("<function")
    assert isinstance(ended, Finished)
    assert ended.outcome.completed


def test_an_outcome_that_cannot_travel_is_a_failure(pool: Pool) -> None:
    finished = run(pool(executors.unpicklable_output))
    assert finished.outcome.status is Status.FAILED


@pytest.mark.parametrize(
    ("given", "how"),
    [
        ({"exit": 0}, "exit code 0"),
        ({"exit": 3}, "exit code 3"),
        ({"signal": signal.SIGKILL}, "killed by SIGKILL"),
        ({"signal": signal.SIGTERM}, "killed by SIGTERM"),
        ({"signal": signal.SIGSEGV}, "killed by SIGSEGV"),
    ],
)
def test_r3_a_dead_executor_is_reported_with_how_it_died_and_replaced(
    pool: Pool, given: dict[str, object], how: str
) -> None:
    one = pool()
    (executor_id,) = idle(one)
    (pid,) = one.pids
    one.submit(claim("e1", say=[1], **given), executor_id)
    reports = reports_until(one, Died)
    assert reports[-1] == Died(executor_id, "e1", how)
    assert not any(isinstance(report, Finished) for report in reports)
    assert not alive(pid)
    assert one.pids == ()
    assert run(one, "e2", n=1).outcome.completed


def test_w5_a_dead_executor_is_not_replaced_before_the_back_off(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restart, "BACKOFF_SECONDS", (3600,))
    one = pool()
    idle(one)
    os.kill(one.pids[0], signal.SIGKILL)
    reports_until(one, Died)
    one.want(1)
    assert one.poll(0.05) == []
    assert one.pids == ()


def test_an_idle_executor_that_dies_is_noticed(pool: Pool) -> None:
    one = pool()
    (executor_id,) = idle(one)
    os.kill(one.pids[0], signal.SIGKILL)
    assert reports_until(one, Died) == [Died(executor_id, "", "killed by SIGKILL")]


def test_a_claim_given_to_an_executor_that_has_just_died(pool: Pool) -> None:
    one = pool()
    (executor_id,) = idle(one)
    os.kill(one.pids[0], signal.SIGKILL)
    until(lambda: not running(one.pids[0]), "its end")
    one.submit(claim("e1", n=1), executor_id)
    assert reports_until(one, Died) == [Died(executor_id, "e1", "killed by SIGKILL")]


def test_kill_ends_a_hanging_execution_at_once_and_the_next_one_starts(pool: Pool) -> None:
    one = pool()
    (executor_id,) = idle(one)
    (pid,) = one.pids
    one.submit(claim("e1", sleep=600), executor_id)
    reports_until(one, Message)
    assert not one.kill("e0")
    assert not one.kill("")
    assert one.kill("e1")
    assert not alive(pid)
    assert not one.kill("e1")
    assert run(one, "e2", n=1).outcome.completed  # no back-off: it was our own doing


@pytest.mark.parametrize("how", ["kill", "death"])
def test_what_an_executor_started_ends_with_it(pool: Pool, how: str) -> None:
    one = pool()
    (executor_id,) = idle(one)
    one.submit(claim("e1", grandchild=600), executor_id)
    (message,) = reports_until(one, Message)
    assert isinstance(message, Message)
    if how == "kill":
        one.kill("e1")
    else:
        os.kill(one.pids[0], signal.SIGKILL)
        reports_until(one, Died)
    wait_gone(int(str(message.body["grandchild"])))


def wait_gone(pid: int) -> None:
    until(lambda: not running(pid), f"the end of {pid}")


def running(pid: int) -> bool:
    """A zombie that nobody reaps here does not count."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False if Path("/proc").exists() else alive(pid)
    return stat.rpartition(")")[2].split()[0] != "Z"


def test_ctrl_c_is_left_to_the_parent(pool: Pool) -> None:
    one = pool()
    (executor_id,) = idle(one)
    one.submit(claim("e1", sleep=0.5), executor_id)
    reports_until(one, Message)
    os.kill(one.pids[0], signal.SIGINT)
    (*_, last) = reports_until(one, Finished)
    assert isinstance(last, Finished)
    assert last.outcome.completed


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (executors.import_error, RuntimeConfigError, "No module named"),
        (executors.exit_at_import, RuntimeConfigError, "SystemExit: I am a script"),
        (executors.definition_error, TaskDefinitionError, "add a params argument"),
    ],
)
def test_work_that_cannot_be_made_is_one_clear_error(
    pool: Pool, make: Make, kind: type[Exception], text: str
) -> None:
    one = pool(make, size=2)
    one.want(2)
    reports = reports_until(one, StartFailed)
    failed = next(report for report in reports if isinstance(report, StartFailed))
    assert type(failed.error) is kind
    assert text in str(failed.error)
    assert "Traceback" in failed.detail
    assert "\n" not in str(failed.error)


def test_an_executor_that_dies_before_it_is_ready_is_not_started_forever(pool: Pool) -> None:
    one = pool(executors.hard_exit_at_import, size=2)
    one.want(1)
    reports = reports_until(one, StartFailed)
    assert sum(isinstance(report, Died) for report in reports) == 3
    failed = reports[-1]
    assert isinstance(failed, StartFailed)
    assert "3 times before it was ready (exit code 9)" in str(failed.error)
    assert one.pids == ()


def test_output_is_captured_by_line(pool: Pool) -> None:
    one = pool(capture_output=True)
    (executor_id,) = idle(one)
    one.submit(claim("e1", print="one\ntwo é"), executor_id)
    reports = reports_until(one, Finished)
    lines = {
        stream: [
            report.line
            for report in reports
            if isinstance(report, Output) and report.stream == stream
        ]
        for stream in ("stdout", "stderr")
    }
    assert lines == {"stdout": ["one", "two é", "from a child"], "stderr": ["problem"]}
    assert isinstance(reports[-1], Finished)


def test_a_flood_of_output_does_not_stop_the_work(pool: Pool) -> None:
    one = pool(capture_output=True)
    (executor_id,) = idle(one)
    one.submit(claim("e1", flood=20_000), executor_id)
    reports = reports_until(one, Finished)
    lines = [report.line for report in reports if isinstance(report, Output)]
    assert [line[:11] for line in lines] == [f"line {n:06}" for n in range(20_000)]


def test_the_last_lines_of_a_dying_executor_are_kept(pool: Pool) -> None:
    one = pool(capture_output=True)
    (executor_id,) = idle(one)
    one.submit(claim("e1", print="last words", exit=1), executor_id)
    reports = reports_until(one, Died)
    lines = [report.line for report in reports if isinstance(report, Output)]
    assert "last words" in lines


def test_100_quick_claims_through_2_children(pool: Pool) -> None:
    one = pool(size=2)
    idle(one, 2)
    waiting = [claim(f"e{number}", n=number) for number in range(100)]
    finished: dict[str, Finished] = {}
    while len(finished) < 100:
        for executor_id in one.idle:
            if waiting:
                one.submit(waiting.pop(), executor_id)
        for report in one.poll(5):
            assert isinstance(report, Finished)
            assert report.execution_id not in finished
            finished[report.execution_id] = report
    assert all(
        report.outcome.output["in"] == {"n": int(execution_id[1:])}
        for execution_id, report in finished.items()
    )
    assert {report.outcome.output["pid"] for report in finished.values()} == set(one.pids)


def test_submit_refuses_a_busy_or_unknown_executor(pool: Pool) -> None:
    one = pool()
    (executor_id,) = idle(one)
    one.submit(claim("e1", sleep=1), executor_id)
    for name in (executor_id, "nobody"):
        with pytest.raises(UsageError, match="is not idle"):
            one.submit(claim("e2"), name)
    reports_until(one, Finished)


def test_wake_ends_a_poll(pool: Pool) -> None:
    one = pool()
    (executor_id,) = idle(one)
    one.wake()
    assert one.poll(10 * LIMIT) == []
    one.submit(claim("e1", say=[1]), executor_id)
    reports_until(one, Finished)  # Only one poll was ended: it waits again for what comes.


@pytest.mark.parametrize(
    ("work_seconds", "grace", "touched"),
    [(0.3, LIMIT, True), (600, 0.3, False)],
    ids=["waits", "kills"],
)
def test_close_waits_for_a_while_then_kills(
    pool: Pool, tmp_path: Path, work_seconds: float, grace: float, touched: bool
) -> None:
    one = pool(size=2)
    path = tmp_path / "done"
    for number, executor_id in enumerate(idle(one, 2)):
        given = {"sleep": work_seconds, "touch": f"{path}{number}"}
        one.submit(claim(f"e{number}", **given), executor_id)
    reports_until(one, Message, count=2)
    pids = one.pids
    one.close(grace)
    assert not any(alive(pid) for pid in pids)
    assert [Path(f"{path}{number}").exists() for number in (0, 1)] == [touched] * 2
    one.close()


def test_the_lock_of_an_executor_tells_that_it_lives(pool: Pool, tmp_path: Path) -> None:
    one = pool()
    (executor_id,) = idle(one)
    assert not await_gone(tmp_path / "locks", executor_id, 0.1)
    os.kill(one.pids[0], signal.SIGKILL)
    assert await_gone(tmp_path / "locks", executor_id, LIMIT)
    reports_until(one, Died)


def test_a_pool_needs_a_size() -> None:
    with pytest.raises(UsageError, match="a pool of 0 executors"):
        ProcessPool(executors.work, 0)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (0, "exit code 0"),
        (1, "exit code 1"),
        (-9, "killed by SIGKILL"),
        (-99, "killed by signal 99"),
        (None, "did not end after SIGKILL"),
    ],
)
def test_how_a_process_ended(code: int | None, text: str) -> None:
    assert describe_exit(code) == text
