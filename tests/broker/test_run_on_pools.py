"""The same workflow on executor processes and on threads."""

from __future__ import annotations

from pathlib import Path

import pytest

from perago.brokers.local import Controls, Runner, RunStatus, State, TaskTable
from perago.clock import SystemClock
from perago.errors import RuntimeConfigError
from perago.process.pool import ProcessPool
from perago.process.threads import ThreadPool
from perago.protocol.values import Status
from perago.workflow.events import Event
from tests.broker.definitions import Json, flow, fork, join, simple
from tests.process import executors


def step(ref: str, **given: object) -> Json:
    return simple(ref, inputParameters=given)


def pool_of(mode: str, directory: Path) -> ProcessPool | ThreadPool:
    if mode == "thread":
        return ThreadPool(executors.work, 2)
    return ProcessPool(executors.work, 2, lock_directory=directory)


@pytest.mark.parametrize("mode", ["process", "thread"])
def test_the_same_result(tmp_path: Path, mode: str) -> None:
    events: list[Event] = []
    definition = flow(
        step("a", say=[1, 2]),
        fork("f", [step("l", n=1)], [step("r", n="${a.output.in.say[1]}")]),
        join("j", "l", "r"),
        outputParameters={"n": "${j.output.r.in.n}"},
    )
    table = TaskTable({"t": Controls()})
    with State(tmp_path / "state.db") as state, pool_of(mode, tmp_path) as pool:
        runner = Runner(state, pool, table, tmp_path, SystemClock(), events.append)
        run = runner.run(runner.create(definition, {}).id)
    assert (run.status, run.output) == (RunStatus.COMPLETED, {"n": 2})
    said = [event["message"] for event in events if event["event"] == "message"]
    assert said == [{"item": 1}, {"item": 2}]


@pytest.mark.parametrize(
    ("given", "status", "reason"),
    [
        ({"raise": 1}, Status.FAILED, "executor: RuntimeError: out of order"),
        ({"exit": 4}, Status.FAILED, "executor died: exit code 4"),
        ({"signal": 9}, Status.FAILED, "executor died: killed by SIGKILL"),
        ({"sleep": 600}, Status.TIMED_OUT, "timeoutSeconds 1 exceeded (policy TIME_OUT_WF)"),
    ],
)
def test_how_an_attempt_can_end(tmp_path: Path, given: Json, status: Status, reason: str) -> None:
    seconds = 1 if status is Status.TIMED_OUT else 3600
    table = TaskTable({"t": Controls(retry_count=0, timeout_seconds=seconds)})
    with State(tmp_path / "state.db") as state, pool_of("process", tmp_path) as pool:
        runner = Runner(state, pool, table, tmp_path, SystemClock())
        run = runner.run(runner.create(flow(step("a", **given)), {}).id)
        (task,) = state.tasks(run.id)
    assert (task.status, task.reason) == (status, reason)
    assert reason in run.reason
    assert [path.name for path in tmp_path.glob("*.lock")] == []


@pytest.mark.parametrize("mode", ["process", "thread"])
def test_a_module_that_cannot_be_imported_is_one_sentence(tmp_path: Path, mode: str) -> None:
    table = TaskTable({"t": Controls()})
    pool: ProcessPool | ThreadPool = (
        ThreadPool(executors.import_error, 1)
        if mode == "thread"
        else ProcessPool(executors.import_error, 1)
    )
    with State(tmp_path / "state.db") as state, pool:
        runner = Runner(state, pool, table, tmp_path, SystemClock())
        run = runner.create(flow(step("a")), {})
        with pytest.raises(RuntimeConfigError, match="an executor could not start: ModuleNot"):
            runner.run(run.id)
        assert state.run(run.id).status is RunStatus.RUNNING
