from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from perago.brokers.local.actions import (
    Action,
    AddSystemTask,
    CancelTask,
    ContinueWithErrors,
    EndRun,
    Schedule,
    TimeOut,
    UpdateSystemTask,
)
from perago.brokers.local.broker import LocalBroker
from perago.brokers.local.state import State
from perago.clock import SystemClock
from perago.errors import BrokerUnavailableError, RuntimeConfigError, UsageError
from perago.protocol.outcome import Outcome
from perago.protocol.values import Status
from perago.workflow.records import RunRecord, RunStatus, TaskRecord, task_id_of
from perago.workflow.tasks import TaskKind
from tests.patience import LIMIT

ROOT = Path(__file__).resolve().parents[2]


def run_record(run_id: str = "run-1") -> RunRecord:
    return RunRecord(
        id=run_id,
        workflow={"name": "flow"},
        modules=("one", "two"),
        input={"a": [1, None, "é"]},
        status=RunStatus.RUNNING,
        created_at=1.5,
        clock_from=1.5,
        correlation_id="c",
    )


def task_record(ref: str = "a", seq: int = 1, run_id: str = "run-1", retry: int = 0) -> TaskRecord:
    return TaskRecord(
        run_id=run_id,
        task_id=task_id_of(run_id, ref, retry),
        seq=seq,
        reference_name=ref,
        task_def_name="t",
        kind=TaskKind.SIMPLE,
        retry_count=retry,
        generation=0,
        status=Status.SCHEDULED,
        input={"workspace": {"ref": "c0"}},
        start_at=2.0,
        scheduled_at=2.0,
    )


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    with State(tmp_path / "sub" / "state.db") as state:
        state.add_run(run_record())
        yield state


def test_records_come_back_as_they_were(state: State) -> None:
    assert state.run("run-1") == run_record()
    assert state.runs() == (run_record(),)
    task = task_record()
    assert state.apply("run-1", [Schedule(task)], 3.0)
    assert state.tasks("run-1") == (task,)
    assert state.task(task.task_id) == task
    assert state.task("nobody") is None
    with State(state.path) as other:
        assert other.tasks("run-1") == (task,)


def test_a_run_is_found_by_the_beginning_of_its_id(state: State) -> None:
    state.add_run(run_record("run-2"))
    state.add_run(run_record("other"))
    assert state.run("oth").id == "other"
    for wrong, message in (("run-", "several runs"), ("x", "no run 'x'"), ("", "several runs")):
        with pytest.raises(UsageError, match=message):
            state.run(wrong)


def test_an_attempt_is_claimed_once(state: State) -> None:
    task = task_record()
    state.apply("run-1", [Schedule(task)], 3.0)
    assert state.claim(task, "e1", "x1", 4.0)
    assert not state.claim(task, "e2", "x2", 5.0)
    found = state.task(task.task_id)
    assert found == replace(
        task,
        status=Status.IN_PROGRESS,
        execution_id="e1",
        executor_id="x1",
        started_at=4.0,
    )


@pytest.mark.parametrize("status", [status for status in Status if status != "IN_PROGRESS"])
def test_a_report_counts_only_while_the_attempt_is_in_progress(
    state: State, status: Status
) -> None:
    broker = LocalBroker(state, SystemClock())
    task = task_record()
    state.apply("run-1", [Schedule(task)], 3.0)
    if status is not Status.SCHEDULED:
        state.claim(task, "e1", "x1", 4.0)
        state.finish(task.task_id, {"status": status})
    assert broker.current(task.attempt).status == status
    assert not broker.report(task.attempt, Outcome(Status.COMPLETED, output={"n": 1}))
    assert not broker.lose(task)
    found = state.task(task.task_id)
    assert found is not None
    assert (found.status, dict(found.output), found.lost) == (status, {}, False)


def test_claim_current_and_report(state: State) -> None:
    broker = LocalBroker(state, SystemClock())
    task = task_record()
    state.apply("run-1", [Schedule(task)], 3.0)
    claim = broker.claim(task, "x1")
    assert claim is not None
    assert claim.attempt == task.attempt
    assert claim.input == task.input
    assert broker.claim(task, "x2") is None
    snapshot = broker.current(task.attempt)
    assert snapshot.status == Status.IN_PROGRESS
    assert (snapshot.workflow_instance_id, snapshot.task_id) == ("run-1", task.task_id)
    assert broker.report(task.attempt, Outcome(Status.COMPLETED, output={"n": 1}))
    assert broker.current(task.attempt).status == Status.COMPLETED
    with pytest.raises(BrokerUnavailableError, match="is not in"):
        broker.current(task_record("b").attempt)


def test_an_output_that_is_not_json_is_no_completion(state: State) -> None:
    broker = LocalBroker(state, SystemClock())
    task = task_record()
    state.apply("run-1", [Schedule(task)], 3.0)
    broker.claim(task, "x1")
    assert not broker.report(task.attempt, Outcome(Status.COMPLETED, output={"n": object()}))
    found = state.task(task.task_id)
    assert found is not None
    assert found.status is Status.FAILED
    assert "not JSON" in found.reason


def test_a_decision_is_carried_out_whole_or_not_at_all(state: State) -> None:
    one, two = task_record("a", 1), task_record("b", 2)
    assert state.apply("run-1", [Schedule(one), Schedule(two)], 3.0)
    state.claim(one, "e1", "x1", 4.0)
    before = state.tasks("run-1")
    # `one` was scheduled when this was decided; meanwhile it is in progress.
    stale: list[Action] = [
        Schedule(task_record("c", 3)),
        TimeOut(two, "late"),
        CancelTask(one),
        EndRun(RunStatus.FAILED),
    ]
    assert not state.apply("run-1", stale, 5.0)
    assert state.tasks("run-1") == before
    assert state.run("run-1").status is RunStatus.RUNNING
    assert not state.apply("run-1", [Schedule(task_record("c", 3)), Schedule(one)], 5.0)
    assert state.tasks("run-1") == before


def test_the_end_of_a_run(state: State) -> None:
    one, two = task_record("a", 1), task_record("b", 2)
    state.apply("run-1", [Schedule(one), Schedule(two)], 3.0)
    assert state.apply(
        "run-1",
        [TimeOut(one, "late"), CancelTask(two), EndRun(RunStatus.FAILED, {"n": 1}, "x")],
        9.0,
    )
    assert [task.status for task in state.tasks("run-1")] == [Status.TIMED_OUT, Status.CANCELED]
    ended = state.run("run-1")
    assert (ended.status, ended.output, ended.reason) == (RunStatus.FAILED, {"n": 1}, "x")
    assert ended.ended_at == 9.0
    assert not state.apply("run-1", [Schedule(task_record("c", 3))], 10.0)


def test_an_optional_task_goes_on_with_errors(state: State) -> None:
    task = task_record()
    state.apply("run-1", [Schedule(task)], 3.0)
    state.claim(task, "e1", "x1", 4.0)
    state.finish(task.task_id, {"status": Status.FAILED, "output": {"n": 1}, "reason": "no"})
    failed = state.tasks("run-1")[0]
    assert state.apply("run-1", [ContinueWithErrors(failed)], 5.0)
    assert state.tasks("run-1")[0] == replace(failed, status=Status.COMPLETED_WITH_ERRORS)


@pytest.mark.parametrize(
    ("status", "generation"),
    [(RunStatus.RUNNING, 0), (RunStatus.FAILED, 1), (RunStatus.TIMED_OUT, 1)],
)
def test_reopening(state: State, status: RunStatus, generation: int) -> None:
    if status is not RunStatus.RUNNING:
        state.apply("run-1", [EndRun(status, {"n": 1}, "why")], 9.0)
    run = state.reopen("run-1", 50.0)
    assert run == replace(run_record(), clock_from=50.0, generation=generation)


def test_a_completed_run_is_not_reopened(state: State) -> None:
    state.apply("run-1", [EndRun(RunStatus.COMPLETED, {"n": 1})], 9.0)
    assert state.reopen("run-1", 50.0).status is RunStatus.COMPLETED


def test_terminate_cancels_what_is_open(state: State) -> None:
    task = task_record()
    state.apply("run-1", [Schedule(task)], 3.0)
    assert state.terminate("run-1", "enough", 4.0)
    assert not state.terminate("run-1", "again", 5.0)
    assert state.run("run-1").reason == "enough"
    assert state.tasks("run-1")[0].status is Status.CANCELED


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    text, database, directory = tmp_path / "a.txt", tmp_path / "b.db", tmp_path / "c"
    text.write_text("not a database at all, but long enough to be looked at" * 50)
    with sqlite3.connect(database) as other:
        other.execute("create table x (y)")
    other.close()
    directory.mkdir()
    for path in (text, database, directory, text / "below"):
        with pytest.raises(RuntimeConfigError, match="cannot hold the state of local runs"):
            State(path)


def test_a_closed_or_locked_state_says_so(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    state.close()
    with pytest.raises(BrokerUnavailableError, match="cannot be used"):
        state.run("run-1")


def open_state(path: Path) -> None:
    State(path).close()


def test_many_processes_may_make_the_file_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    path = tmp_path / "state.db"
    children = [context.Process(target=open_state, args=(path,)) for _ in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join(LIMIT)
        assert child.exitcode == 0
        child.close()


def test_threads_claim_each_attempt_once(state: State) -> None:
    tasks = [task_record(f"t{number}", number) for number in range(1, 21)]
    state.apply("run-1", [Schedule(task) for task in tasks], 3.0)
    claimed: list[str] = []

    def claim_all(name: str) -> None:
        with State(state.path) as own:
            claimed.extend(task.task_id for task in tasks if own.claim(task, name, name, 4.0))

    threads = [threading.Thread(target=claim_all, args=(f"x{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert sorted(claimed) == sorted(task.task_id for task in tasks)


@pytest.mark.parametrize("seed", range(8))
def test_kill_at_any_instant_leaves_a_whole_state(tmp_path: Path, seed: int) -> None:
    """A writer applies three-part decisions as fast as it can until it is killed."""
    path = tmp_path / "state.db"
    State(path).close()
    writer = subprocess.Popen(
        [sys.executable, "-m", "tests.broker.restless", str(path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    assert writer.stdout is not None
    with writer, writer.stdout:
        assert writer.stdout.readline() == b"ready\n"
        time.sleep(random.Random(seed).uniform(0.0, 0.25))  # any moment will do
        writer.send_signal(signal.SIGKILL)
    with State(path) as state:
        for run in state.runs(10_000):
            tasks = state.tasks(run.id)
            shape = [str(task.status) for task in tasks]
            assert shape in (
                [],
                ["SCHEDULED", "SCHEDULED"],
                ["IN_PROGRESS", "SCHEDULED"],
                ["COMPLETED", "SCHEDULED"],
            ) or (shape == ["COMPLETED", "CANCELED"])
            ended = shape == ["COMPLETED", "CANCELED"]
            assert (run.status is RunStatus.FAILED) == ended
            assert (run.ended_at is not None) == ended
        state.add_run(run_record("after"))
    with sqlite3.connect(path) as database:
        assert database.execute("pragma integrity_check").fetchone() == ("ok",)
    database.close()


@pytest.mark.parametrize("version", [1, 2])
def test_a_file_of_an_older_version_is_brought_up_to_date(tmp_path: Path, version: int) -> None:
    path = tmp_path / "state.db"
    with State(path) as state:
        state.add_run(run_record())
        assert state.apply("run-1", [Schedule(task_record())], 3.0)
    older = {
        2: [
            "drop index runs_by_time",
            "drop index runs_by_name",
            "drop index runs_by_status",
            "drop index left_to_people",
            "alter table runs drop column parent",
            "alter table runs drop column parent_task",
        ],
        1: ["alter table tasks drop column iteration"],
    }
    database = sqlite3.connect(path)
    for number in range(2, version - 1, -1):
        for statement in older[number]:
            database.execute(statement)
    database.execute(f"pragma user_version = {version}")
    database.commit()
    database.close()
    with State(path) as state:
        assert state.tasks("run-1") == (task_record(),)
        assert state.family("run-1") == (run_record(),)
        later = replace(task_record("b__2", 2), iteration=2)
        assert state.apply("run-1", [Schedule(later)], 4.0)
        assert state.tasks("run-1")[1].attempt.iteration == 2


def test_a_task_of_the_broker_moves_on(state: State) -> None:
    opened = replace(task_record("loop"), kind=TaskKind.DO_WHILE, status=Status.IN_PROGRESS)
    assert state.apply("run-1", [AddSystemTask(opened)], 3.0)
    moved = replace(opened, iteration=2, output={"iteration": 2})
    assert state.apply("run-1", [UpdateSystemTask(opened, moved)], 4.0)
    assert state.tasks("run-1") == (moved,)
    stale = replace(opened, status=Status.COMPLETED)
    assert not state.apply("run-1", [UpdateSystemTask(stale, moved)], 5.0)
