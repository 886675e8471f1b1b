"""What an operator does to a workflow through Conductor, while a worker works on it."""

from __future__ import annotations

import signal
from functools import partial
from pathlib import Path

import pytest

from tests import injection
from tests.worker.stage import LEASE, Stage, alive, eventually


def begun(stage: Stage, name: str) -> Path:
    path = stage.directory / name
    eventually(Path(f"{path}.begun").exists, f"the body of {name}")
    return path


@pytest.mark.parametrize("mode", ["process", "thread"])
def test_w4_terminate_stops_the_work_and_publishes_nothing(stage: Stage, mode: str) -> None:
    settings = {"DEEDS_RESPONSE": LEASE}
    stage.register(**settings)
    workspace = stage.workspace()
    worker = stage.start("-j", "1", "--execution-mode", mode, ready=True, **settings)
    path = stage.directory / "a"
    workflow = stage.run("write", workspace=workspace, do="wait", path=str(path))
    begun(stage, "a")
    end = partial(stage.client.terminate, workflow, "not needed")
    injection.inject("workflow terminated", end)
    eventually(Path(f"{path}.cancelled").exists, "the body hears of it")
    stage.completed(stage.run())
    assert stage.tasks(workflow) == [("CANCELED", 0)]
    assert stage.head(workspace) == workspace["ref"]
    assert stage.staging(workspace) == []
    assert worker.stop() == 0
    assert stage.attempt_dirs() == []


def test_w4_a_lost_attempt_that_does_not_give_up_loses_its_executor(stage: Stage) -> None:
    settings = {"DEEDS_RESPONSE": LEASE}
    stage.register(**settings)
    workspace = stage.workspace()
    worker = stage.start("-j", "1", ready=True, **settings)
    workflow = stage.run("write", workspace=workspace, do="deaf", path=str(stage.directory / "a"))
    pid = int(Path(f"{begun(stage, 'a')}.begun").read_text())
    end = partial(stage.client.terminate, workflow, "not needed")
    injection.inject("workflow terminated", end)
    eventually(lambda: not alive(pid), "the end of the executor")
    stage.completed(stage.run())
    eventually(lambda: not stage.attempt_dirs())
    assert stage.head(workspace) == workspace["ref"]
    assert worker.stop() == 0


def test_a_timeout_of_the_engine_is_a_lost_attempt_and_the_retry_completes(stage: Stage) -> None:
    """A stopped process extends nothing; when it goes on, another attempt has the task."""
    settings = {"DEEDS_RESPONSE": LEASE}
    stage.register(**settings)
    workspace = stage.workspace()
    first = stage.start("-j", "1", ready=True, **settings)
    path = str(stage.directory / "a")
    workflow = stage.run("write", workspace=workspace, pause="after stage", path=path, text="old")
    eventually(Path(f"{path}.paused").exists)
    # The supervisor: no heartbeat any more.
    injection.inject("SIGSTOP", lambda: first.signal(signal.SIGSTOP))
    second = stage.start(
        "-j", "1", ready=True, **settings, PERAGO_WORKSPACE_ROOT=str(stage.directory / "other")
    )
    ended = stage.completed(workflow)
    assert stage.tasks(workflow) == [("TIMED_OUT", 0), ("COMPLETED", 1)]
    published = ended["tasks"][1]["outputData"]["workspace"]["ref"]
    Path(f"{path}.go").touch()
    first.signal(signal.SIGCONT)
    eventually(lambda: "StaleAttempt" in first.text() or "attempt lost" in first.text())
    assert first.stop() == 0
    assert stage.history(workspace) == [published]
    assert stage.staging(workspace) == []
    assert second.stop() == 0


def test_pause_and_resume(stage: Stage) -> None:
    """A paused workflow lets its running task end, and schedules nothing more."""
    stage.register()
    stage.start("-j", "1")
    path = stage.directory / "a"
    workflow = stage.run(do="wait", path=str(path))
    begun(stage, "a")
    stage.ask("PUT", workflow, "pause")
    assert stage.workflow(workflow)["status"] == "PAUSED"
    Path(f"{path}.go").touch()
    eventually(lambda: stage.tasks(workflow) == [("COMPLETED", 0)])
    stage.ask("PUT", workflow, "resume")
    stage.completed(workflow)


def test_retry_restart_and_rerun(stage: Stage) -> None:
    """Every one of them is a new attempt from the same input ref; the branch has one child."""
    stage.register()
    workspace = stage.workspace()
    stage.start("-j", "1")
    workflow = stage.run("write", workspace=workspace, do="fail", text="1")
    assert stage.ended(workflow)["status"] == "FAILED"
    stage.ask("POST", workflow, "retry")
    eventually(lambda: len(stage.tasks(workflow)) > 4, "another attempt")
    assert stage.ended(workflow)["status"] == "FAILED"

    good = stage.run("write", workspace=workspace, text="2")
    first = stage.completed(good)["tasks"][0]
    stage.ask("POST", good, "restart")
    again = eventually(
        lambda: next(
            (
                task
                for task in stage.workflow(good)["tasks"]
                if task["taskId"] != first["taskId"] and task["status"] == "COMPLETED"
            ),
            None,
        )
    )
    assert stage.history(workspace) == [again["outputData"]["workspace"]["ref"]]
    stage.ask("POST", good, "rerun", body={"reRunFromTaskId": again["taskId"]})
    stage.completed(good)
    (head,) = stage.history(workspace)
    assert stage.workflow(good)["tasks"][-1]["outputData"]["workspace"]["ref"] == head
    assert stage.read(workspace, "data/out.txt") == b"2"


def test_two_workers_share_the_work(stage: Stage) -> None:
    stage.register()
    stage.start("-j", "1", PERAGO_WORKER_ID_PREFIX="one-")
    stage.start(
        "-j",
        "1",
        PERAGO_WORKER_ID_PREFIX="two-",
        PERAGO_WORKSPACE_ROOT=str(stage.directory / "other"),
    )
    paths = [stage.directory / name for name in "ab"]
    ids = [stage.run(do="wait", path=str(path)) for path in paths]
    for path in paths:  # Each of them has a worker of its own before one may end.
        begun(stage, path.name)
    for path in paths:
        Path(f"{path}.go").touch()
    workers = {stage.completed(one)["tasks"][0]["workerId"] for one in ids}
    assert workers == {"one-0001", "two-0001"}
