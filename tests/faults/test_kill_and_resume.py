"""``perago run`` killed with SIGKILL at random moments and resumed: as if nothing had happened."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from perago.app.local import Home
from perago.protocol.values import Status
from tests import injection
from tests.faults.paths import ALL
from tests.patience import LIMIT

STEPS = ("make", "double", "thin", "idle", "total", "look")
PUBLISHING = ("make", "double", "thin", "total")
ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("PERAGO_TEST_KILLS", "25"))
RUN_ID = re.compile(r"run ([0-9a-f-]{36})")

Trees = list[dict[str, str]]


def definition() -> dict[str, object]:
    tasks = []
    before = "${workflow.input.workspace}"
    for step in STEPS:
        tasks.append(
            {
                "name": step,
                "taskReferenceName": f"{step}_ref",
                "type": "SIMPLE",
                "inputParameters": {"workspace": before, "params": {}},
            }
        )
        before = f"${{{step}_ref.output.workspace}}"
    return {"name": "victim", "version": 1, "tasks": tasks, "outputParameters": {"end": before}}


@dataclass
class Victim:
    """A project directory in which the pipeline is run, killed and resumed."""

    directory: Path

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start ``perago run``; it leads a process group of its own."""
        return subprocess.Popen(
            [sys.executable, "-u", "-m", "perago", "run", *arguments],
            cwd=self.directory,
            env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def first(self) -> subprocess.Popen[str]:
        (self.directory / "flow.json").write_text(json.dumps(definition()))
        return self.start("flow.json", "tests.faults.pipeline", "--repo", "victim")

    @property
    def home(self) -> Home:
        return Home(self.directory / ".perago", self.directory / ".perago" / "rooms")


def run_id_of(process: subprocess.Popen[str]) -> str:
    """Wait until the run is made: its id is in the first line."""
    assert process.stdout
    line = process.stdout.readline()
    found = RUN_ID.search(line)
    assert found, line + process.stdout.read()
    return found[1]


def kill_somewhere(process: subprocess.Popen[str], chance: random.Random, span: float) -> None:
    """Let it work for a random while, then kill the runner, or now and then an executor."""
    time.sleep(chance.uniform(0, span))  # any moment will do
    victim = process.pid
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    if chance.random() < 0.2 and children.exists():
        alive = [int(pid) for pid in children.read_text().split()]
        victim = chance.choice(alive) if alive else victim
    try:
        injection.inject("SIGKILL at a random moment", lambda: os.kill(victim, signal.SIGKILL))
    except ProcessLookupError:
        return
    if victim != process.pid:
        time.sleep(chance.uniform(0, span))  # any moment will do
        injection.inject("SIGKILL of the runner", process.kill)


def trees(home: Home) -> Trees:
    """Read the content of every commit of the target, oldest first (V4)."""
    found = []
    for commit in home.store.history("victim", "main"):
        listing = home.store.listing("victim", commit.id, "")
        found.append({info.key: info.checksum for info in listing})
    return found[::-1]


def check_invariants(home: Home, run_id: str, expected: Trees) -> None:
    history = list(home.store.history("victim", "main"))[::-1]
    steps = [commit.metadata["perago.task"] for commit in history[1:]]
    assert steps == list(PUBLISHING)  # V1: one publication per step, never two
    for parent, child in itertools.pairwise(history):
        assert child.parents == (parent.id,)
    assert trees(home) == expected  # V2, V4: whole trees, byte for byte
    reachable = {commit.id for commit in history}
    accepted = [task for task in home.state.tasks(run_id) if task.status is Status.COMPLETED]
    assert {task.task_def_name for task in accepted} == set(STEPS)  # V5
    for task in accepted:  # V3: what was accepted stays reachable
        workspace = task.output["workspace"]
        assert isinstance(workspace, dict)
        assert workspace["ref"] in reachable
    assert not [path for path in home.attempt_dirs.iterdir() if path.is_dir()]  # V7
    assert [branch.name for branch in home.store.branches("victim", hidden=True)] == ["main"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trees, float]:
    victim = Victim(tmp_path_factory.mktemp("undisturbed"))
    process = victim.first()
    run_id = run_id_of(process)
    began = time.monotonic()
    out, _ = process.communicate(timeout=LIMIT)
    span = time.monotonic() - began
    assert process.returncode == 0, out
    found = trees(victim.home)
    check_invariants(victim.home, run_id, found)
    victim.home.close()
    return found, span


@pytest.mark.parametrize("seed", [1, 2] if ALL else [1])
def test_v1_to_v7_killed_at_random_moments(
    tmp_path: Path, undisturbed: tuple[Trees, float], seed: int
) -> None:
    expected, span = undisturbed
    chance = random.Random(seed)
    kills = runs = 0
    while kills < KILLS and not injection.OFF:
        runs += 1
        victim = Victim(tmp_path / f"run-{runs}")
        victim.directory.mkdir()
        process = victim.first()
        run_id = run_id_of(process)
        while True:
            if kills < KILLS:
                kill_somewhere(process, chance, span)
            out, _ = process.communicate(timeout=LIMIT)
            if process.returncode == 0:
                break
            assert process.returncode == -signal.SIGKILL, out
            kills += 1
            process = victim.start("--resume", run_id)
            assert run_id_of(process) == run_id
        check_invariants(victim.home, run_id, expected)
        victim.home.close()
    assert kills >= KILLS
