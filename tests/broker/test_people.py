"""Q10: a HUMAN step in the local broker is open at once, and only a person ends it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perago.brokers.local.broker import LocalBroker
from perago.brokers.local.human import LocalHumanTasks
from perago.brokers.local.runner import Runner, TaskTable
from perago.brokers.local.state import State
from perago.errors import UsageError, WorkflowDefinitionError
from perago.protocol.outcome import Outcome
from perago.protocol.values import Status
from perago.workflow.controls import Controls, TimeoutAction
from perago.workflow.human import HumanTask, chosen
from perago.workflow.records import RunStatus, left_to_people
from perago.workflow.tasks import TaskKind
from tests.broker.definitions import Json, World, flow, fork, join, parsed, simple, system
from tests.broker.scripted import ManualClock, ScriptedPool

DONE, FAILED = Status.COMPLETED, Status.FAILED


def human(ref: str, **more: Any) -> Json:
    return {**simple(ref), "type": "HUMAN", **more}


def started(*tasks: Json, controls: Controls | None = None) -> World:
    world = World(parsed(*tasks), controls={"t": controls} if controls else {})
    world.settle()
    return world


def test_q10_it_is_open_for_people_at_once() -> None:
    world = started(human("ask"), simple("next"))
    task = world.open("ask")
    assert (task.kind, task.status, task.started_at) == (
        TaskKind.HUMAN,
        Status.IN_PROGRESS,
        world.now,
    )
    world.end(task, DONE, {"result": {}})
    world.settle()
    assert world.open("next").kind is TaskKind.SIMPLE


def test_q10_a_rejected_step_is_open_again_without_the_delay_of_a_retry() -> None:
    """As in Conductor, which has no queue for people in which anything could be delayed."""
    world = started(human("ask"), controls=Controls(retry_count=1, retry_delay_seconds=60))
    world.end(world.open("ask"), FAILED, reason="no")
    world.settle()
    task = world.open("ask")
    assert (task.retry_count, task.status, task.start_at) == (1, Status.IN_PROGRESS, world.now)
    world.end(task, FAILED, reason="never")
    world.settle()
    assert world.run.status is RunStatus.FAILED


def test_q10_no_timeout_of_a_task_ends_what_a_person_does() -> None:
    controls = Controls(timeout_seconds=5, timeout_policy=TimeoutAction.TIME_OUT_WF)
    world = started(human("ask"), controls=controls)
    world.now += 1_000_000
    assert world.settle().wake_at is None
    assert world.run.status is RunStatus.RUNNING


def test_q10_a_start_delay_is_refused_because_conductor_ignores_it() -> None:
    with pytest.raises(WorkflowDefinitionError, match="startDelay is not honoured"):
        parsed(human("ask", startDelay=5))


@pytest.mark.parametrize(
    ("tasks", "left"),
    [
        pytest.param([human("ask")], True, id="alone"),
        pytest.param([simple("a")], False, id="nobody"),
        pytest.param([fork("f", [human("ask")], [simple("a")]), join("j", "ask", "a")], False),
        pytest.param(
            [fork("f", [human("ask")], [system("WAIT", "w", duration="1h")]), join("j", "ask")],
            False,
            id="beside a wait",
        ),
        pytest.param([fork("f", [human("ask")], [human("b")]), join("j", "ask", "b")], True),
    ],
)
def test_q15_a_run_is_left_to_people_when_nothing_else_is_under_way(
    tasks: list[Json], left: bool
) -> None:
    assert left_to_people(started(*tasks).tasks.values()) is left


class Waiting:
    """A home with one runner, and the steps that wait in it."""

    def __init__(self, directory: Path, *tasks: Json) -> None:
        self.state = State(directory / "runs.sqlite")
        self.clock = ManualClock()
        self.pool = ScriptedPool(self.clock)
        table = TaskTable({"t": Controls(retry_count=1)})
        self.runner = Runner(self.state, self.pool, table, directory, self.clock)
        self.run = self.runner.create(flow(*tasks), {})
        self.people = LocalHumanTasks(self.state)


def test_q15_a_runner_leaves_a_run_that_waits_and_another_goes_on_with_it(tmp_path: Path) -> None:
    found = Waiting(tmp_path, human("ask"), human("again"))
    assert found.runner.run(found.run.id).status is RunStatus.RUNNING
    (task,) = found.people.waiting()
    assert (task.step, task.workflow, task.where) == ("ask", "flow", "local")
    broker = LocalBroker(found.state, found.clock)
    assert broker.report(task.attempt, Outcome(DONE, {"result": {}}))
    assert not broker.report(task.attempt, Outcome(DONE, {"result": {"late": 1}}))
    assert found.people.waiting() == []
    found.runner.resume(found.run.id)
    (task,) = found.people.waiting()
    assert task.step == "again"
    assert found.state.terminate(found.run.id, "enough", 0.0)
    assert found.people.waiting() == []
    over = found.people.task(task.attempt.task_id)
    assert over is not None
    assert not over.open


def test_q13_who_has_taken_a_step_is_noted_and_no_lock(tmp_path: Path) -> None:
    found = Waiting(tmp_path, human("ask"))
    found.runner.run(found.run.id)
    for person in ("ada", "ben", "ada"):
        (task,) = found.people.waiting()
        found.people.note_claims(task.taken_by(person))
    (task,) = found.people.waiting()
    assert task.claimed_by == ("ben", "ada")
    found.people.note_claims(task.given_back_by("ben"))
    assert found.people.waiting()[0].claimed_by == ("ada",)
    assert LocalBroker(found.state, found.clock).report(task.attempt, Outcome(DONE, {}))
    found.people.note_claims(task.taken_by("late"))
    kept = found.state.task(task.attempt.task_id)
    assert kept is not None
    assert (kept.status, kept.output) == (DONE, {})


def test_a_step_is_found_by_its_name_or_the_beginning_of_its_id(tmp_path: Path) -> None:
    found = Waiting(tmp_path, human("ask"))
    found.runner.run(found.run.id)
    (task,) = found.people.waiting()
    other = replace(task, attempt=replace(task.attempt, task_id="f" * 36))
    assert chosen("ask", [task]) == task
    assert chosen(task.attempt.task_id[:6], [task, other]) == task
    assert chosen("", [task]) is None
    assert chosen("nothing", [task]) is None
    with pytest.raises(UsageError, match="several steps"):
        chosen("ask", [task, other])


def test_a_task_that_is_no_persons_is_not_shown(tmp_path: Path) -> None:
    found = Waiting(tmp_path, simple("a"))
    assert found.people.task("nothing") is None
    assert [task for task in found.people.waiting() if isinstance(task, HumanTask)] == []
