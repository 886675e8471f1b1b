"""Executors and workers killed with SIGKILL on the way; the retry completes (W5, R3, V5, V7)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perago.protocol.points import POINTS
from tests import injection
from tests.worker.stage import LEASE, Stage, eventually

DEADLY = [
    "claimed",
    "after attempt directory",
    "after download",
    "before body",
    "after diff",
    "branch created",
    "committed",
    "after second attempt fence",
    "applied",
    "after publish",
    "after staging cleanup",
    "after directory cleanup",
]
assert set(DEADLY) <= set(POINTS)


@pytest.mark.parametrize("point", DEADLY)
def test_an_executor_killed_at_a_point_is_reported_and_the_retry_completes(
    stage: Stage, point: str
) -> None:
    stage.register()
    workspace = stage.workspace({"data/in.txt": b"in"})
    workflow = stage.run("write", workspace=workspace)
    worker = stage.start("-j", "1", PERAGO_KILL_AT=f"write:0:{point}")
    ended = stage.completed(workflow)
    assert stage.tasks(workflow) == [("FAILED", 0), ("COMPLETED", 1)]
    reason = ended["tasks"][0]["reasonForIncompletion"]
    assert "executor died" in reason
    assert "killed by SIGKILL" in reason
    assert stage.history(workspace) == [ended["tasks"][1]["outputData"]["workspace"]["ref"]]
    assert stage.read(workspace, "data/out.txt") == b"written"
    assert worker.stop() == 0
    assert stage.attempt_dirs() == []
    assert stage.staging(workspace) == []


def test_r3_a_worker_killed_before_it_reports_is_followed_by_a_retry(stage: Stage) -> None:
    """The supervisor reports, so it is the one that dies; what it published is replaced."""
    settings = {"DEEDS_RESPONSE": LEASE}
    stage.register(**settings)
    workspace = stage.workspace()
    workflow = stage.run("write", workspace=workspace)
    deadly = settings | {"PERAGO_KILL_AT": "write:0:before report"}
    first = stage.start("-j", "1", ready=False, module="deeds", **deadly)
    eventually(lambda: first.process.poll() is not None, "the death of the worker")
    abandoned = stage.head(workspace)
    assert abandoned != workspace["ref"]
    second = stage.start("-j", "1", ready=True, module="deeds", **settings)
    ended = stage.completed(workflow)
    assert stage.tasks(workflow) == [("TIMED_OUT", 0), ("COMPLETED", 1)]
    published = ended["tasks"][1]["outputData"]["workspace"]["ref"]
    assert stage.history(workspace) == [published]
    assert published != abandoned
    assert second.stop() == 0
    assert stage.attempt_dirs() == []
    assert stage.staging(workspace) == []


def test_a_worker_killed_after_its_report_changes_nothing(stage: Stage) -> None:
    stage.register()
    workflow = stage.run()
    worker = stage.start("-j", "1", ready=False, PERAGO_KILL_AT="free:0:after report")
    stage.completed(workflow)
    assert stage.tasks(workflow) == [("COMPLETED", 0)]
    eventually(lambda: worker.process.poll() is not None, "the death of the worker")


@pytest.mark.parametrize("mode", ["process", "thread"])
def test_a_worker_that_is_killed_whole_is_followed_by_another(stage: Stage, mode: str) -> None:
    """Its attempts time out at the engine; what it left is swept by the next start."""
    settings = {"DEEDS_RESPONSE": LEASE, "PERAGO_EXECUTION_MODE": mode}
    stage.register(**settings)
    workspace = stage.workspace()
    first = stage.start("-j", "1", ready=True, **settings)
    path = str(stage.directory / "a")
    workflow = stage.run("write", workspace=workspace, pause="after publish", path=path)
    eventually(Path(f"{path}.paused").exists)
    abandoned = stage.head(workspace)
    assert abandoned != workspace["ref"]
    injection.inject("SIGKILL of the worker", first.kill)
    second = stage.start("-j", "1", ready=True, **settings)
    ended = stage.completed(workflow)
    assert stage.tasks(workflow) == [("TIMED_OUT", 0), ("COMPLETED", 1)]
    published = ended["tasks"][1]["outputData"]["workspace"]["ref"]
    assert stage.history(workspace) == [published]
    assert published != abandoned
    assert second.stop() == 0
    assert stage.attempt_dirs() == []
    state = json.loads(stage.perago("status", "--json").stdout)
    assert state["state"] == "stopped"
