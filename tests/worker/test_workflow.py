"""Workflows from start to end, retries, outputs; processes and threads (W3)."""

from __future__ import annotations

import json
from socket import socket
from urllib.request import urlopen

import pytest

from tests.patience import LIMIT
from tests.worker.stage import Stage, eventually

MODES = ["process", "thread"]


@pytest.mark.parametrize("mode", MODES)
def test_a_workflow_runs_from_start_to_end(stage: Stage, mode: str) -> None:
    stage.register()
    workspace = stage.workspace({"data/in.txt": b"in", "other/x.txt": b"x"})
    worker = stage.start("-j", "2", "--execution-mode", mode)
    ended = stage.completed(stage.run("write", workspace=workspace, text="hello"))
    (task,) = ended["tasks"]
    published = task["outputData"]["workspace"]["ref"]
    assert task["outputData"]["result"]["text"] == "hello"
    assert stage.history(workspace) == [published] == [stage.head(workspace)]
    assert stage.read(workspace, "data/out.txt") == b"hello"
    assert task["workerId"] in {f"{stage.tag}-0001", f"{stage.tag}-0002"}
    assert worker.stop() == 0
    assert stage.attempt_dirs() == []
    assert stage.staging(workspace) == []


@pytest.mark.parametrize("mode", MODES)
def test_many_workflows_on_few_executors(stage: Stage, mode: str) -> None:
    stage.register()
    ids = [stage.run(text=str(number)) for number in range(20)]
    worker = stage.start("-j", "2", "--execution-mode", mode)
    texts = [stage.completed(one)["tasks"][0]["outputData"]["result"]["text"] for one in ids]
    assert texts == [str(number) for number in range(20)]
    assert worker.stop() == 0
    assert worker.text().count("COMPLETED") == 20


@pytest.mark.parametrize("mode", MODES)
def test_a_failed_attempt_is_tried_again_from_the_same_input(stage: Stage, mode: str) -> None:
    stage.register()
    workspace = stage.workspace()
    stage.start("-j", "1", "--execution-mode", mode)
    path = str(stage.directory / "a")
    workflow = stage.run("write", workspace=workspace, do="fail once", path=path)
    ended = stage.completed(workflow)
    assert stage.tasks(workflow) == [("FAILED", 0), ("COMPLETED", 1)]
    assert "TaskFailed: not this time" in ended["tasks"][0]["reasonForIncompletion"]
    assert len(stage.history(workspace)) == 1


def test_retries_are_used_up(stage: Stage) -> None:
    stage.register()
    stage.start("-j", "1")
    workflow = stage.run(do="fail")
    assert stage.ended(workflow)["status"] == "FAILED"
    assert stage.tasks(workflow) == [("FAILED", number) for number in range(4)]


def test_a_result_that_is_too_big_is_refused_before_anything_is_published(stage: Stage) -> None:
    stage.register()
    workspace = stage.workspace()
    stage.start("-j", "1", PERAGO_OUTPUT_MAX_SIZE="1KB")
    workflow = stage.run("write", workspace=workspace, do="big", seconds=5000)
    ended = stage.ended(workflow)
    assert ended["status"] == "FAILED"
    assert "result model: ResultError" in ended["tasks"][0]["reasonForIncompletion"]
    assert "PERAGO_OUTPUT_MAX_SIZE" in ended["tasks"][0]["reasonForIncompletion"]
    assert stage.history(workspace) == []


def test_what_a_body_prints_is_in_the_logs(stage: Stage) -> None:
    stage.register()
    stage.start("-j", "1")
    ended = stage.completed(stage.run(do="print"))
    task_id = ended["tasks"][0]["taskId"]
    (line,) = eventually(lambda: stage.logged("printed by the body"))
    assert line["task_id"] == task_id
    assert line["worker_id"] == f"{stage.tag}-0001"


def test_status_tells_what_runs(stage: Stage) -> None:
    stage.register()
    assert stage.perago("status").returncode == 1
    worker = stage.start("-j", "1")
    path = stage.directory / "a"
    workflow = stage.run(do="wait", path=str(path))
    eventually((stage.directory / "a.begun").exists)
    eventually(lambda: worker.state["running"])
    done = stage.perago("status", "--json")
    found = json.loads(done.stdout)
    assert (found["alive"], found["ready"], found["state"]) == (True, True, "running")
    (run,) = found["running"]
    assert (run["workflow_instance_id"], run["phase"]) == (workflow, "body")
    assert run["worker_id"] == found["executors"][0]["worker_id"]
    shown = stage.perago("status")
    assert "running, ready" in shown.stdout
    assert "free:0" in shown.stdout
    (stage.directory / "a.go").touch()
    stage.completed(workflow)
    assert worker.stop() == 0
    ended = json.loads(stage.perago("status", "--json").stdout)
    assert (ended["alive"], ended["state"]) == (False, "stopped")
    assert ended["counts"]["completed"] == 1


def test_probes_and_metrics_answer(stage: Stage) -> None:
    stage.register()
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    worker = stage.start("-j", "1", PERAGO_HTTP=address)
    stage.completed(stage.run())

    def page(name: str) -> str:
        with urlopen(f"http://{address}/{name}", timeout=LIMIT) as answer:
            return str(answer.read().decode())

    assert page("healthz")
    assert page("readyz")
    eventually(lambda: f'task="free_{stage.tag}"' in page("metrics"))
    assert worker.stop() == 0


def test_p2a_a_later_step_that_reads_the_same_input_does_not_replace_a_completed_one(
    stage: Stage,
) -> None:
    """``perago register`` refuses such a workflow (W9a); this one came from somewhere else."""
    stage.register()
    workspace = stage.workspace()
    stage.start("-j", "1")
    steps = [
        {
            "name": f"write_{stage.tag}",
            "taskReferenceName": name,
            "type": "SIMPLE",
            "retryCount": 0,
            "inputParameters": {
                "workspace": "${workflow.input.workspace}",
                "params": {"name": f"{name}.txt"},
            },
        }
        for name in ("first", "second")
    ]
    ended = stage.ended(stage.run_steps(steps, {"workspace": workspace}))
    assert [task["status"] for task in ended["tasks"]] == ["COMPLETED", "FAILED"]
    kept = ended["tasks"][0]["outputData"]["workspace"]["ref"]
    assert stage.head(workspace) == kept
    reason = ended["tasks"][1]["reasonForIncompletion"]
    assert "which is COMPLETED" in reason
    assert "${first.output.workspace}" in reason
