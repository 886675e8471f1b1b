from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from perago.brokers.local.runner import Runner, TaskTable
from perago.brokers.local.state import State
from perago.errors import RuntimeConfigError, UsageError, WorkflowDefinitionError
from perago.process.lock import FileLock, executor_lock
from perago.process.reports import StartFailed
from perago.protocol.outcome import Outcome
from perago.protocol.values import Status
from perago.workflow.controls import Controls, RetryLogic, TimeoutAction
from perago.workflow.events import Event
from perago.workflow.records import RunRecord, RunStatus
from tests.broker.definitions import Json, flow, fork, join, simple, switch, writer
from tests.broker.scripted import DONE, FAILED, HANGS, TERMINAL, Deed, ManualClock, ScriptedPool


@dataclass
class Stage:
    """A runner with everything around it."""

    directory: Path
    state: State
    clock: ManualClock = field(default_factory=ManualClock)
    events: list[Event] = field(default_factory=list)
    pool: ScriptedPool = field(init=False)
    controls: Controls = field(default_factory=Controls)

    def __post_init__(self) -> None:
        self.pool = ScriptedPool(self.clock)

    def runner(self) -> Runner:
        return Runner(
            state=self.state,
            pool=self.pool,
            tasks=TaskTable({"t": self.controls, "w": self.controls}, frozenset({"w"})),
            lock_directory=self.directory,
            clock=self.clock,
            on_event=self.events.append,
            jitter=lambda: 0.0,
        )

    def play(self, *tasks: Json, given: Json | None = None, **script: Any) -> RunRecord:
        runner = self.runner()
        run = runner.create(flow(*tasks), given or {}, modules=["m"])
        self.pool.script.update(script)
        return runner.run(run.id)

    def statuses(self, run: RunRecord) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for task in self.state.tasks(run.id):
            found.setdefault(task.reference_name, []).append(str(task.status))
        return found

    def told(self, *names: str) -> list[str]:
        return [
            f"{event['event']} {event.get('reference_task_name', '')}".strip()
            for event in self.events
            if not names or event["event"] in names
        ]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with State(tmp_path / "state.db") as state:
        yield Stage(tmp_path / "locks", state)


class CrashError(Exception):
    """Ends a runner in the middle."""


def ten_seconds(names: list[str]) -> dict[str, Any]:
    return {name: [Deed(seconds=10)] for name in names}


def completed(**output: object) -> Deed:
    return Deed(outcome=Outcome(Status.COMPLETED, output=output))


def test_a_run_from_beginning_to_end(stage: Stage) -> None:
    run = stage.play(
        simple("a", inputParameters={"params": "${workflow.input.n}"}),
        simple("b", inputParameters={"params": "${a.output.result}"}),
        given={"n": 4},
        a=[completed(result=5)],
        b=[completed(result=6)],
    )
    assert run.status is RunStatus.COMPLETED
    assert run.output == {"result": 6}
    assert [claim.input for claim in stage.pool.claims] == [{"params": 4}, {"params": 5}]
    assert stage.told() == [
        "run_started",
        *("task_scheduled a", "task_claimed a", "task_finished a"),
        *("task_scheduled b", "task_claimed b", "task_finished b"),
        "run_finished",
    ]
    assert not list(stage.directory.iterdir())
    assert stage.state.run(run.id).modules == ("m",)


def test_branches_run_side_by_side_up_to_the_size_of_the_pool(stage: Stage) -> None:
    stage.pool.size = 2
    names = ["a", "b", "c", "d"]
    begin = stage.clock.now()
    run = stage.play(
        fork("f", *([simple(name)] for name in names)),
        join("j", *names),
        **ten_seconds(names),
    )
    assert run.status is RunStatus.COMPLETED
    assert stage.pool.busiest == 2
    assert stage.clock.now() - begin == pytest.approx(20)


def test_a_retry_waits_for_its_delay(stage: Stage) -> None:
    stage.controls = Controls(
        retry_delay_seconds=60, retry_logic=RetryLogic.EXPONENTIAL_BACKOFF, retry_count=2
    )
    begin = stage.clock.now()
    run = stage.play(simple("a"), a=[FAILED, FAILED])
    assert run.status is RunStatus.COMPLETED
    assert stage.clock.now() - begin == pytest.approx(180)
    retries = [event["in_seconds"] for event in stage.events if event["event"] == "task_retry"]
    assert retries == [60, 120]
    assert len({claim.attempt.task_id for claim in stage.pool.claims}) == 3


def test_a_failure_ends_the_run_and_kills_the_siblings(stage: Stage) -> None:
    run = stage.play(
        fork("f", [simple("a")], [simple("b")], [simple("c")]),
        join("j", "a", "b", "c"),
        a=[Deed(seconds=5, outcome=TERMINAL.outcome)],
        b=[HANGS],
        c=[DONE],
    )
    assert run.status is RunStatus.FAILED
    assert "task 'a' ended FAILED_WITH_TERMINAL_ERROR" in run.reason
    assert stage.pool.killed == ["b"]
    assert stage.statuses(run) == {
        "f": ["COMPLETED"],
        "a": ["FAILED_WITH_TERMINAL_ERROR"],
        "b": ["CANCELED"],
        "c": ["COMPLETED"],
        "j": ["CANCELED"],
    }


def test_r3_a_dead_executor_is_a_failure_with_its_exit_in_the_reason(stage: Stage) -> None:
    run = stage.play(simple("a"), a=[Deed(dies="killed by SIGKILL")])
    assert run.status is RunStatus.COMPLETED
    first, second = stage.state.tasks(run.id)
    assert (first.status, first.reason) == (Status.FAILED, "executor died: killed by SIGKILL")
    assert not first.lost
    assert second.start_at == pytest.approx((first.ended_at or 0) + 60)


def test_r3_an_executor_that_reported_and_then_died_has_completed(stage: Stage) -> None:
    def report() -> None:
        (task,) = [task for task in stage.state.tasks(run.id) if task.status == "IN_PROGRESS"]
        stage.state.finish(task.task_id, {"status": Status.COMPLETED, "output": {"n": 1}})

    runner = stage.runner()
    run = runner.create(flow(simple("a")), {})
    stage.pool.script["a"] = [Deed(dies="exit code 1", then=report)]
    ended = runner.run(run.id)
    assert ended.status is RunStatus.COMPLETED
    assert ended.output == {"n": 1}


def test_a_timeout_kills_the_executor_and_the_retry_follows(stage: Stage) -> None:
    stage.controls = Controls(
        timeout_seconds=30, timeout_policy=TimeoutAction.RETRY, retry_delay_seconds=0
    )
    begin = stage.clock.now()
    run = stage.play(simple("a"), a=[HANGS, HANGS])
    assert run.status is RunStatus.COMPLETED
    assert stage.statuses(run) == {"a": ["TIMED_OUT", "TIMED_OUT", "COMPLETED"]}
    assert stage.pool.killed == ["a", "a"]
    assert stage.clock.now() - begin == pytest.approx(60)


def test_a_timeout_with_the_default_policy_ends_the_run(stage: Stage) -> None:
    stage.controls = Controls(timeout_seconds=30)
    run = stage.play(simple("a"), a=[HANGS])
    assert run.status is RunStatus.TIMED_OUT
    assert "timeoutSeconds 30 exceeded" in run.reason


def test_an_alert_is_told_once(stage: Stage) -> None:
    stage.controls = Controls(timeout_seconds=30, timeout_policy=TimeoutAction.ALERT_ONLY)
    run = stage.play(simple("a"), a=[Deed(seconds=100)])
    assert run.status is RunStatus.COMPLETED
    alerts = [event for event in stage.events if event["event"] == "alert"]
    assert [alert["reason"] for alert in alerts] == [
        "timeoutSeconds 30 exceeded (policy ALERT_ONLY)"
    ]


def test_limits_hold_attempts_back(stage: Stage) -> None:
    stage.controls = Controls(concurrent_exec_limit=1)
    names = ["a", "b", "c"]
    tasks = [fork("f", *([simple(name)] for name in names)), join("j", *names)]
    stage.play(*tasks, **ten_seconds(names))
    assert stage.pool.busiest == 1
    stage.controls = Controls(rate_limit_per_frequency=2, rate_limit_frequency_in_seconds=60)
    begin = stage.clock.now()
    run = stage.play(*tasks)
    assert run.status is RunStatus.COMPLETED
    starts = [task.started_at for task in stage.state.tasks(run.id) if task.kind == "SIMPLE"]
    assert [start - begin for start in starts if start] == [0, 0, pytest.approx(60)]


def test_what_executors_say_is_forwarded(stage: Stage) -> None:
    run = stage.play(simple("a"), a=[Deed(says=({"phase": "download"},), prints=("hello",))])
    message, line = (e for e in stage.events if e["event"] in ("message", "output"))
    assert message["message"] == {"phase": "download"}
    assert message["reference_task_name"] == "a"
    assert (line["stream"], line["line"]) == ("stdout", "hello")
    assert run.status is RunStatus.COMPLETED


def test_a_pool_that_cannot_start_is_one_error_and_the_run_can_be_resumed(stage: Stage) -> None:
    stage.pool.start_error = StartFailed(RuntimeConfigError("no", remedy="do"))
    with pytest.raises(RuntimeConfigError, match="no; do"):
        stage.play(simple("a"))
    (run,) = stage.state.runs()
    stage.pool.start_error = None
    assert stage.runner().resume(run.id).status is RunStatus.COMPLETED


def test_nothing_is_remembered_of_a_workflow_that_is_refused(stage: Stage) -> None:
    workspace = {"repository": "r", "branch": "main"}
    for tasks in (
        [{**simple("a"), "type": "HTTP"}],
        [
            fork("f", [writer("a", workspace)], [writer("b", workspace)]),
            join("j", "a", "b"),
        ],
    ):
        with pytest.raises(WorkflowDefinitionError):
            stage.play(*tasks)
    assert stage.state.runs() == ()


def test_a_second_runner_is_refused(stage: Stage) -> None:
    runner = stage.runner()
    run = runner.create(flow(simple("a")), {})
    with FileLock(stage.directory / f"run-{run.id}.lock") as lock:
        assert lock.acquire()
        for start in (runner.run, runner.resume):
            with pytest.raises(UsageError, match="is being run by another process"):
                start(run.id)


@pytest.mark.parametrize("moment", ["task_scheduled", "task_claimed", "message"])
def test_stop_leaves_a_run_that_can_be_resumed(stage: Stage, moment: str) -> None:
    runner = stage.runner()

    def listen(event: Event) -> None:
        stage.events.append(event)
        if event["event"] == moment:
            runner.stop()

    runner.on_event = listen
    run = runner.create(flow(simple("a"), simple("b")), {})
    stage.pool.script["a"] = [Deed(seconds=5, says=({"x": 1},))]
    stopped = runner.run(run.id)
    assert stopped.status is RunStatus.RUNNING
    assert stage.told()[-1] == "run_stopped"
    resumed = stage.runner().resume(run.id[:8])
    assert resumed.status is RunStatus.COMPLETED
    if moment == "task_claimed":
        first, second, _ = stage.state.tasks(run.id)
        assert (first.status, first.lost, first.reason) == (Status.FAILED, True, "interrupted")
        assert (second.retry_count, second.status) == (1, Status.COMPLETED)
        assert second.start_at == second.scheduled_at


def test_resume_after_a_crash_marks_lost_attempts(stage: Stage) -> None:
    stage.controls = Controls(retry_count=0)
    runner = stage.runner()
    run = runner.create(flow(simple("a"), simple("b")), {})

    def listen(event: Event) -> None:
        if event["event"] == "task_claimed" and event["reference_task_name"] == "b":
            raise CrashError

    runner.on_event = listen
    stage.pool.script["a"] = [completed(n=1)]
    with pytest.raises(CrashError):
        runner.run(run.id)
    stage.pool.claims.clear()
    assert stage.runner().resume(run.id).status is RunStatus.COMPLETED
    assert [claim.attempt.reference_task_name for claim in stage.pool.claims] == ["b"]
    assert stage.statuses(run)["b"] == ["FAILED", "COMPLETED"]
    assert stage.state.tasks(run.id)[1].lost


def test_resume_waits_for_the_executors_of_a_killed_runner(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perago.brokers.local.runner.GONE_SECONDS", 0.1)
    runner = stage.runner()
    run = runner.create(flow(simple("a")), {})
    runner.on_event = lambda event: runner.stop() if event["event"] == "task_scheduled" else None
    runner.run(run.id)
    (task,) = stage.state.tasks(run.id)
    stage.state.claim(task, "e1", "alive", stage.clock.now())
    with executor_lock(stage.directory, "alive") as lock:
        assert lock.acquire()
        with pytest.raises(UsageError, match=r"executor alive of task 'a' .* is still alive"):
            stage.runner().resume(run.id)
        assert stage.state.tasks(run.id)[0].status is Status.IN_PROGRESS
    assert stage.runner().resume(run.id).status is RunStatus.COMPLETED


def test_resume_of_a_completed_run_says_so(stage: Stage) -> None:
    run = stage.play(simple("a"))
    stage.events.clear()
    assert stage.runner().resume(run.id) == run
    assert stage.told() == ["run_already_completed"]
    assert len(stage.pool.claims) == 1


def test_resume_of_a_failed_run_tries_the_failed_tasks_with_fresh_retries(stage: Stage) -> None:
    stage.controls = Controls(retry_count=1, retry_delay_seconds=0)
    run = stage.play(simple("a"), simple("b"), b=[FAILED, FAILED, FAILED, DONE])
    assert run.status is RunStatus.FAILED
    assert stage.runner().resume(run.id).status is RunStatus.COMPLETED
    assert stage.statuses(run) == {
        "a": ["COMPLETED"],
        "b": ["FAILED", "FAILED", "FAILED", "COMPLETED"],
    }


def test_resume_of_a_run_whose_task_is_gone_is_one_sentence(stage: Stage) -> None:
    runner = stage.runner()
    run = runner.create(flow(simple("a")), {})
    runner.tasks = TaskTable({"other": Controls()})
    with pytest.raises(WorkflowDefinitionError, match=f"run {run.id}: .* 't' is not a known task"):
        runner.resume(run.id)


def test_a_run_terminated_from_outside_stops(stage: Stage) -> None:
    runner = stage.runner()
    run = runner.create(flow(fork("f", [simple("a")], [simple("b")]), join("j", "a", "b")), {})
    stage.pool.script["a"] = [
        Deed(seconds=5, then=lambda: _terminate(stage, run)),
    ]
    stage.pool.script["b"] = [HANGS]
    ended = runner.run(run.id)
    assert (ended.status, ended.reason) == (RunStatus.TERMINATED, "enough")
    assert stage.pool.killed == ["b"]
    cancelled = {name: ["CANCELED"] for name in "abj"}
    assert stage.statuses(run) == {"f": ["COMPLETED"], **cancelled}


def _terminate(stage: Stage, run: RunRecord) -> None:
    stage.state.terminate(run.id, "enough", stage.clock.now())


def test_a_late_report_of_a_timed_out_attempt_changes_nothing(stage: Stage) -> None:
    stage.controls = Controls(
        timeout_seconds=5, timeout_policy=TimeoutAction.RETRY, retry_delay_seconds=0
    )
    run = stage.play(simple("a"), a=[HANGS, completed(n=2)])
    first, _ = stage.state.tasks(run.id)
    assert not stage.state.finish(first.task_id, {"status": Status.COMPLETED})
    assert run.output == {"n": 2}


def test_a_switch_by_input(stage: Stage) -> None:
    tasks = [switch("s", "${workflow.input.kind}", [simple("z")], big=[simple("x")])]
    for kind, ref in (("big", "x"), ("small", "z")):
        run = stage.play(*tasks, given={"kind": kind})
        assert stage.statuses(run) == {"s": ["COMPLETED"], ref: ["COMPLETED"]}
