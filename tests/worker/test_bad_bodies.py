"""Bodies that do what they should not: a documented failure, and the worker goes on (R3, W5)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tests import injection
from tests.patience import scaled
from tests.worker.stage import LEASE, Stage, alive, eventually

STUCK = math.ceil(scaled(5))


def harmful(stage: Stage, task: str = "free", **params: Any) -> str:
    """Start a workflow whose body does what it should not."""
    begun: list[str] = []
    what = f"body: {params['do']}"
    injection.inject(what, lambda: begun.append(stage.run(task, **params)))
    return begun[0] if begun else stage.run(task, **params | {"do": ""})


@pytest.mark.parametrize(
    ("do", "reason"),
    [
        ("exit", "executor died in body: exit code 3"),
        ("signal", "executor died in body: killed by SIGKILL"),
        ("fork", "TaskFailed: "),
        ("fork and leave", "body: TaskFailed: the body left a copy of its process running"),
    ],
)
def test_r3_a_body_that_ends_or_doubles_its_executor(stage: Stage, do: str, reason: str) -> None:
    stage.register()
    workspace = stage.workspace()
    worker = stage.start("-j", "1")
    path = str(stage.directory / "a")
    workflow = harmful(stage, "write", workspace=workspace, do=do, path=path)
    ended = stage.completed(workflow)
    assert stage.tasks(workflow) == [("FAILED", 0), ("COMPLETED", 1)]
    assert reason in ended["tasks"][0]["reasonForIncompletion"]
    assert stage.history(workspace) == [ended["tasks"][1]["outputData"]["workspace"]["ref"]]
    assert stage.staging(workspace) == []
    assert worker.stop() == 0
    assert stage.attempt_dirs() == []


def test_v7_what_an_executor_cannot_remove_any_more_is_removed_for_it(stage: Stage) -> None:
    """Not by the next sweep, which may be an hour away."""
    stage.register()
    workspace = stage.workspace()
    worker = stage.start("-j", "1")
    path = str(stage.directory / "a")
    workflow = harmful(stage, "write", workspace=workspace, do="no descriptors", path=path)
    stage.completed(workflow)
    eventually(lambda: stage.attempt_dirs() == [], "the removal for the executor")
    assert worker.stop() == 0


def test_a_body_that_exhausts_memory_is_ended(stage: Stage) -> None:
    stage.register()
    worker = stage.start("-j", "1", PERAGO_EXECUTOR_MAX_MEMORY="300MB")
    workflow = harmful(stage, do="memory", path=str(stage.directory / "a"))
    ended = stage.completed(workflow)
    assert stage.tasks(workflow) == [("FAILED", 0), ("COMPLETED", 1)]
    assert "PERAGO_EXECUTOR_MAX_MEMORY" in ended["tasks"][0]["reasonForIncompletion"]
    assert worker.stop() == 0


def test_a_body_that_holds_the_interpreter_is_ended_and_the_others_go_on(stage: Stage) -> None:
    stage.register()
    worker = stage.start("-j", "2", PERAGO_STUCK_AFTER=f"{STUCK}s")
    workflow = harmful(stage, do="gil", path=str(stage.directory / "a"))
    eventually((stage.directory / "a.first").exists)
    stage.completed(stage.run())
    ended = stage.completed(workflow)
    assert stage.tasks(workflow) == [("FAILED", 0), ("COMPLETED", 1)]
    assert f"no sign of life for {STUCK} s" in ended["tasks"][0]["reasonForIncompletion"]
    assert worker.stop() == 0


def test_a_body_that_blocks_for_ever_ends_with_the_time_limit_of_its_workflow(
    stage: Stage,
) -> None:
    """It gives signs of life, so only the engine can say that it has been long enough."""
    stage.register()
    worker = stage.start("-j", "2", DEEDS_RESPONSE=LEASE)
    path = stage.directory / "a"
    workflow = harmful(stage, do="deaf", path=str(path))
    eventually(Path(f"{path}.begun").exists)
    pid = int(Path(f"{path}.begun").read_text())
    stage.completed(stage.run())
    stage.client.terminate(workflow, "long enough")
    eventually(lambda: not alive(pid), "the end of the executor")
    stage.completed(stage.run())
    assert worker.stop() == 0
    assert stage.logged("attempt lost")


def test_an_executor_is_replaced_after_so_many_attempts(stage: Stage) -> None:
    stage.register()
    worker = stage.start("-j", "1", PERAGO_EXECUTOR_MAX_ATTEMPTS="2")
    ids = [stage.run() for _ in range(6)]
    pids = [stage.completed(one)["tasks"][0]["outputData"]["result"]["pid"] for one in ids]
    assert len(set(pids)) == 3
    assert worker.stop() == 0


def test_executors_that_die_one_after_the_other_stop_the_polling_for_a_while(
    stage: Stage,
) -> None:
    stage.register()
    worker = stage.start("-j", "2")
    for number in range(7):
        harmful(stage, do="signal", path=str(stage.directory / f"a{number}"))
    eventually(lambda: worker.state.get("paused_until"), "a pause")
    assert not worker.state["ready"]
    assert "one after the other" in worker.state["why_not_ready"]
    assert worker.stop() == 0
