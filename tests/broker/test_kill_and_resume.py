"""A run that is killed anywhere goes on from its last completed step, with real processes."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import IO

import pytest

from perago.brokers.local.state import State
from perago.protocol.values import Status
from perago.workflow.records import RunRecord, RunStatus
from tests import injection
from tests.patience import LIMIT

ROOT = Path(__file__).resolve().parents[2]


def runner(
    directory: Path, run_id: str = "", seconds: float = 0.02, *shape: str
) -> subprocess.Popen[str]:
    words = [str(directory), run_id, str(seconds), *shape]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.broker.killable", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )


def wait_for(stream: IO[str] | None, events: str, ref: str = "") -> None:
    assert stream is not None
    for line in stream:
        told = json.loads(line)
        if told["event"] in events.split() and told.get("reference_task_name", "") == ref:
            return
    raise AssertionError(f"{events} never came")


def the_run(directory: Path) -> RunRecord:
    with State(directory / "state.db") as state:
        (run,) = state.started_runs()
        return run


def check(directory: Path, *more: str) -> None:
    """Every step completed once, and its completion was accepted once."""
    with State(directory / "state.db") as state:
        (run,) = state.started_runs()
        assert run.status is RunStatus.COMPLETED
        assert run.output == {"sum": 4}
        assert all(each.status is RunStatus.COMPLETED for each in state.family(run.id))
        tasks = state.family_tasks(run.id)
    done = Counter(task.reference_name for task in tasks if task.status is Status.COMPLETED)
    assert done == Counter(["a", "f", "l", "r", "j", "z", *more])
    assert all(task.lost for task in tasks if task.status is Status.FAILED)
    lines = [json.loads(line) for line in (directory / "journal").read_text().splitlines()]
    accepted = Counter(ref for ref, _, accepted in lines if accepted)
    assert all(count == 1 for count in accepted.values())
    assert sorted(path.name for path in directory.glob("*.lock")) == []


@pytest.mark.parametrize("seed", range(12))
def test_killed_at_a_random_moment_and_resumed(tmp_path: Path, seed: int) -> None:
    random_moment = random.Random(seed)
    run_id = ""
    for _ in range(2):
        process = runner(tmp_path, run_id, seconds=0.1)
        with process:
            wait_for(process.stdout, "run_started run_resumed run_already_completed")
            time.sleep(random_moment.uniform(0, 1.2))  # any moment will do
            injection.inject("SIGKILL", process.kill)
        run_id = the_run(tmp_path).id
    with runner(tmp_path, run_id) as process:
        assert process.stdout is not None
        process.stdout.read()
    assert process.returncode == 0
    check(tmp_path)


@pytest.mark.parametrize("seed", range(6))
def test_killed_at_a_random_moment_of_its_sub_workflows_and_resumed(
    tmp_path: Path, seed: int
) -> None:
    """What a child completed is not done again, and no child is there twice."""
    random_moment = random.Random(seed)
    run_id = ""
    for _ in range(2):
        with runner(tmp_path, run_id, 0.1, "nested") as process:
            wait_for(process.stdout, "run_started run_resumed run_already_completed")
            time.sleep(random_moment.uniform(0, 1.2))  # any moment will do
            injection.inject("SIGKILL", process.kill)
        run_id = the_run(tmp_path).id
    with runner(tmp_path, run_id) as process:
        assert process.stdout is not None
        process.stdout.read()
    assert process.returncode == 0
    check(tmp_path, "o", "i")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_at_once_and_the_run_can_be_resumed(
    tmp_path: Path, number: signal.Signals
) -> None:
    with runner(tmp_path, seconds=3600) as process:
        wait_for(process.stdout, "message", "a")
        injection.inject(number.name, lambda: process.send_signal(number))
        wait_for(process.stdout, "run_stopped")
        process.wait(LIMIT)
    assert process.returncode == 0
    run = the_run(tmp_path)
    assert run.status is RunStatus.RUNNING
    with State(tmp_path / "state.db") as state:
        (task,) = state.tasks(run.id)
        assert (task.status, task.lost) == (Status.FAILED, True)
    assert list(tmp_path.glob("*.lock")) == []


def test_a_second_runner_is_refused_while_the_first_lives(tmp_path: Path) -> None:
    with runner(tmp_path, seconds=3600) as first:
        wait_for(first.stdout, "message", "a")
        run_id = the_run(tmp_path).id
        second = subprocess.run(
            [sys.executable, "-m", "tests.broker.killable", str(tmp_path), run_id, "0"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
        )
        assert "is being run by another process" in second.stderr
        with State(tmp_path / "state.db") as state:
            assert state.tasks(run_id)[0].status is Status.IN_PROGRESS
        first.send_signal(signal.SIGKILL)
