"""SIGTERM, SIGINT, a second signal, SIGHUP (W6): nothing is left, nothing is lost silently."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from perago.brokers.conductor.mapping import attempt_of
from perago.worker.polling import give_back
from tests.patience import TEST_SECONDS
from tests.worker.stage import LEASE, Stage, Worker, alive, eventually

REPEATS = int(os.environ.get("WORKER_REPEATS", "3"))
"""How often starting and stopping is repeated; set it to 100 for the long look."""
PATIENT = {"PERAGO_SHUTDOWN_FORCE_KILL_AFTER": "3600s"}
"""Whoever waited for the grace would not end before the test does."""


def gone(worker: Worker, pids: list[int]) -> bool:
    return worker.process.poll() is not None and not any(map(alive, pids))


@pytest.mark.timeout(TEST_SECONDS + 30 * REPEATS)
def test_w6_an_idle_worker_ends_at_once(stage: Stage) -> None:
    stage.register()
    for _ in range(REPEATS):
        worker = stage.start("-j", "2", ready=True, **PATIENT)
        pids = worker.pids
        assert worker.stop() == 0
        assert gone(worker, pids)
    assert stage.attempt_dirs() == []


@pytest.mark.timeout(TEST_SECONDS + 30 * REPEATS)
def test_w6_a_busy_worker_drains_reports_and_ends(stage: Stage) -> None:
    stage.register()
    for number in range(REPEATS):
        workspace = stage.workspace()
        worker = stage.start("-j", "2")
        path = stage.directory / f"a{number}"
        ids = [
            stage.run("write", workspace=workspace, do="wait", path=str(path)),
            stage.run(do="wait", path=f"{path}-b"),
        ]
        eventually(Path(f"{path}.begun").exists)
        eventually(Path(f"{path}-b.begun").exists)
        pids = worker.pids
        worker.signal(signal.SIGTERM)
        Path(f"{path}.go").touch()
        Path(f"{path}-b.go").touch()
        assert worker.wait() == 0
        assert gone(worker, pids)
        assert stage.attempt_dirs() == []
        assert [stage.workflow(one)["status"] for one in ids] == ["COMPLETED", "COMPLETED"]
        assert stage.staging(workspace) == []


def test_w6_nothing_new_is_taken_while_draining(stage: Stage) -> None:
    stage.register()
    worker = stage.start("-j", "1")
    path = stage.directory / "a"
    first = stage.run(do="wait", path=str(path))
    eventually(Path(f"{path}.begun").exists)
    worker.signal(signal.SIGINT)
    eventually(lambda: "draining" in worker.text())
    second = stage.run()
    Path(f"{path}.go").touch()
    assert worker.wait() == 0
    assert stage.workflow(first)["status"] == "COMPLETED"
    assert stage.tasks(second) == [("SCHEDULED", 0)]


@pytest.mark.parametrize(
    "settings", [{"DEEDS_GRACE": "1"}, {"PERAGO_SHUTDOWN_FORCE_KILL_AFTER": "1s"}]
)
def test_w6_what_does_not_end_within_the_grace_is_killed_and_reported(
    stage: Stage, settings: dict[str, str]
) -> None:
    stage.register()
    workspace = stage.workspace()
    worker = stage.start("-j", "1", ready=True, **settings)
    path = stage.directory / "a"
    workflow = stage.run("write", workspace=workspace, do="deaf", path=str(path))
    eventually(Path(f"{path}.begun").exists)
    pids = worker.pids
    assert worker.stop() == 0
    assert gone(worker, pids)
    assert stage.attempt_dirs() == []
    assert stage.tasks(workflow)[:2] == [("FAILED", 0), ("SCHEDULED", 1)]
    reason = stage.workflow(workflow)["tasks"][0]["reasonForIncompletion"]
    assert "worker stopped by SIGTERM" in reason
    assert stage.head(workspace) == workspace["ref"]


def test_w6_the_lease_is_kept_while_draining(stage: Stage) -> None:
    settings = {"DEEDS_RESPONSE": LEASE}
    stage.register(**settings)
    worker = stage.start("-j", "1", ready=True, **settings)
    path = stage.directory / "a"
    workflow = stage.run(do="wait", path=str(path))
    eventually(Path(f"{path}.begun").exists)
    worker.signal(signal.SIGTERM)
    leases = 2 * 1000 * int(LEASE)

    def is_kept() -> bool:
        (task,) = stage.workflow(workflow)["tasks"]
        return bool(task["updateTime"] - task["startTime"] > leases)

    eventually(is_kept, "the lease that was kept twice")
    Path(f"{path}.go").touch()
    assert worker.wait() == 0
    assert stage.tasks(workflow) == [("COMPLETED", 0)]


def test_w6_a_second_signal_ends_at_once(stage: Stage) -> None:
    stage.register()
    worker = stage.start("-j", "2", ready=True, **PATIENT)
    path = stage.directory / "a"
    stage.run(do="deaf", path=str(path))
    eventually(Path(f"{path}.begun").exists)
    pids = worker.pids
    worker.signal(signal.SIGTERM)
    eventually(lambda: "draining" in worker.text())
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 130
    eventually(lambda: gone(worker, pids), "the end of its executors")


def test_sighup_finishes_what_runs_and_starts_again_with_new_code(stage: Stage) -> None:
    stage.register()
    worker = stage.start("-j", "1")
    path = stage.directory / "a"
    first = stage.run(do="wait", path=str(path))
    eventually(Path(f"{path}.begun").exists)
    begun, pids = worker.state["started_at"], worker.pids
    module = stage.directory / "deeds.py"
    module.write_text(module.read_text().replace("text=params.text", "text='new code'"))
    worker.signal(signal.SIGHUP)
    eventually(lambda: "draining" in worker.text())
    Path(f"{path}.go").touch()
    eventually(lambda: worker.state.get("started_at", begun) > begun)
    worker.until_ready()
    assert stage.completed(first)["tasks"][0]["outputData"]["result"]["text"] == "written"
    second = stage.completed(stage.run())
    assert second["tasks"][0]["outputData"]["result"]["text"] == "new code"
    assert not any(map(alive, pids))
    children = Path(f"/proc/{worker.process.pid}/task/{worker.process.pid}/children")
    zombies = [pid for pid in children.read_text().split() if not alive(int(pid))]
    assert zombies == []
    assert worker.stop() == 0


def test_a_claim_that_nobody_began_is_delivered_again_at_once(stage: Stage) -> None:
    """A poll under way when the signal comes may still bring one: it loses no retry."""
    stage.register()
    workflow = stage.run()
    (task,) = eventually(lambda: stage.client.poll(f"free_{stage.tag}", "w", 1))
    assert give_back(stage.client, attempt_of(task), "w", lambda *_: None)
    (again,) = eventually(lambda: stage.client.poll(f"free_{stage.tag}", "w", 1))
    assert (again["taskId"], again["retryCount"]) == (task["taskId"], 0)
    assert stage.tasks(workflow) == [("IN_PROGRESS", 0)]
