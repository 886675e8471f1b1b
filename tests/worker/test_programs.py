"""Programs as tasks of a worker, on real Conductor and lakeFS (Q3 to Q8)."""

from __future__ import annotations

import json
import signal
import sys
from functools import partial
from pathlib import Path
from textwrap import dedent

import pytest

from tests import injection
from tests.worker.stage import LEASE, Stage, alive, eventually

STEP = """
import json, os, signal, subprocess, sys, time
params = json.load(open(os.environ["PERAGO_PARAMS"]))
retry = json.load(open(os.environ["PERAGO_ATTEMPT"]))["retry_count"]
print("working on it")
open("out.txt", "w").write(f"try {retry}")
if params.get("do") == "fail" and not retry:
    sys.exit("no luck")
if params.get("do") == "wait" and not retry:
    left = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    def ask(*_):
        open(params["path"] + ".asked", "w").write("x")
        sys.exit(1)
    signal.signal(signal.SIGTERM, ask)
    open(params["path"] + ".new", "w").write(f"{os.getpid()} {left.pid}")
    os.rename(params["path"] + ".new", params["path"])
    time.sleep(1000)
open(os.environ["PERAGO_RESULT"], "w").write(json.dumps({"retry": retry}))
"""


@pytest.fixture
def manifest(stage: Stage) -> str:
    (stage.directory / "step.py").write_text(STEP)
    (stage.directory / "tasks.toml").write_text(
        dedent(
            f"""
            [[task]]
            name = "program_{stage.tag}"
            owner_email = "tests@example.com"
            command = [{json.dumps(sys.executable)}, "{{here}}/step.py"]
            [task.workspace]
            [task.controls.retry]
            count = 2
            delay_seconds = 0
            [task.controls.timeout]
            response_seconds = {LEASE}
            """
        )
    )
    done = stage.perago("register", "tasks.toml")
    assert done.returncode == 0, done.stdout + done.stderr
    return "tasks.toml"


def started(stage: Stage, **params: str) -> tuple[dict[str, str], str]:
    workspace = stage.workspace({"in.txt": b"in"})
    return workspace, stage.run("program", workspace=workspace, **params)


def test_q5_a_program_publishes_and_a_failed_one_is_tried_again(
    stage: Stage, manifest: str
) -> None:
    worker = stage.start("-j", "1", module=manifest)
    workspace, workflow = started(stage, do="fail")
    found = stage.completed(workflow)
    assert stage.tasks(workflow) == [("FAILED", 0), ("COMPLETED", 1)]
    first, last = found["tasks"]
    assert first["reasonForIncompletion"].endswith("exit code 1: no luck")
    assert last["outputData"]["result"] == {"retry": 1}
    assert stage.read(workspace, "out.txt") == b"try 1"
    assert len(stage.history(workspace)) == 1
    assert worker.stop() == 0
    assert stage.attempt_dirs() == []
    assert stage.logged("working on it")


def test_q7_a_terminated_workflow_ends_the_program_and_what_it_started(
    stage: Stage, manifest: str
) -> None:
    worker = stage.start("-j", "1", module=manifest)
    path = stage.directory / "begun"
    workspace, workflow = started(stage, do="wait", path=str(path))
    eventually(path.exists, "the program has begun")
    pids = [int(pid) for pid in path.read_text().split()]
    end = partial(stage.client.terminate, workflow, "not needed")
    injection.inject("workflow terminated", end)
    eventually(Path(f"{path}.asked").exists, "the program is asked to end")
    eventually(lambda: not any(map(alive, pids)), "the end of the program")
    eventually(lambda: not stage.attempt_dirs(), "a clean root")
    assert stage.head(workspace) == workspace["ref"]
    assert worker.stop() == 0


def test_q7_a_killed_worker_takes_the_program_with_it_and_the_retry_completes(
    stage: Stage, manifest: str
) -> None:
    worker = stage.start("-j", "1", module=manifest)
    path = stage.directory / "begun"
    workspace, workflow = started(stage, do="wait", path=str(path))
    eventually(path.exists, "the program has begun")
    pids = [int(pid) for pid in path.read_text().split()]
    injection.inject("SIGKILL of the worker", partial(worker.signal, signal.SIGKILL))
    eventually(lambda: not any(map(alive, pids)), "the end of the program")
    second = stage.start("-j", "1", module=manifest)
    stage.completed(workflow)
    assert stage.read(workspace, "out.txt").startswith(b"try ")
    assert len(stage.history(workspace)) == 1
    assert second.stop() == 0
    assert stage.attempt_dirs() == []
