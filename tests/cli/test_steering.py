"""``perago watch``, ``cancel`` and ``restart`` of local runs."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Perago
from tests.environment import clean_environment
from tests.patience import LIMIT, until

SLOW = """
import time
from pathlib import Path
from pydantic import BaseModel
from perago import WorkspaceSpec, task

class Params(BaseModel):
    name: str = "[red]a:fire:b"

class Result(BaseModel):
    done: bool = True

@task(name="slow", owner_email="a@example.com", workspace=WorkspaceSpec())
def slow(workspace: Path, params: Params) -> Result:
    Path("begun").touch()
    while not Path("go").exists():
        time.sleep(0.01)
    (workspace / "out.txt").write_text(params.name)
    return Result()
"""


@pytest.fixture
def slow(project: Path) -> subprocess.Popen[bytes]:
    """Begin a run that ends when a file is there."""
    (project / "slow.py").write_text(SLOW)
    words = [sys.executable, "-m", "perago", "run", "slow", "--json"]
    begun = subprocess.Popen(words, cwd=project, env=clean_environment(), stdout=subprocess.DEVNULL)
    until((project / "begun").exists, "the body")
    return begun


def only_run(perago: Perago) -> str:
    (run,) = perago("runs", "--json").json
    return str(run["run"])


def test_a_run_is_watched_to_its_end(
    project: Path, perago: Perago, slow: subprocess.Popen[bytes]
) -> None:
    run = only_run(perago)
    (project / "go").touch()
    seen = perago("watch", run[:8])
    assert seen.code == 0, seen
    assert "✓ slow  published" in seen.out
    assert f"COMPLETED  run {run}" in seen.out
    assert slow.wait(LIMIT) == 0
    document = perago("watch", run, "--json").json
    assert (document["where"], document["status"]) == ("local", "COMPLETED")
    assert [step["step"] for step in document["steps"]] == ["slow"]


def test_a_run_is_cancelled_and_restarted_from_the_head(
    project: Path, perago: Perago, slow: subprocess.Popen[bytes]
) -> None:
    run = only_run(perago)
    refused = perago("restart", run[:8])
    assert refused.code == 2
    assert f"perago cancel {run}" in refused.err
    ended = perago("cancel", run[:8], "--reason", "wrong [day]", "--json")
    assert (ended.code, ended.json["status"]) == (0, "TERMINATED")
    assert slow.wait(LIMIT) == 1
    watched = perago("watch", run)
    assert watched.code == 1
    assert "wrong [day]" in watched.out
    assert f"perago restart {run}" in watched.out
    again = perago("cancel", run)
    assert (again.code, again.err.count("\n")) == (2, 1)
    assert "TERMINATED already" in again.err

    (project / "go").touch()
    (project / "more").mkdir()
    (project / "more" / "b.txt").write_text("b")
    assert perago("run", "slow", "--from", "more").code == 0
    head = perago("log", "--json").json["publications"][0]["commit"]
    restarted = perago("restart", run, "--json")
    assert restarted.code == 0, restarted
    assert restarted.json["run"] != run
    assert restarted.json["output"]["workspace"]["ref"] == head, "it began at the head"


def test_a_run_whose_process_is_gone_is_not_waited_for(
    perago: Perago, slow: subprocess.Popen[bytes]
) -> None:
    run = only_run(perago)
    slow.send_signal(signal.SIGKILL)
    slow.wait(LIMIT)
    seen = perago("watch", run)
    assert seen.code == 1
    assert f"perago run --resume {run}" in seen.out
    assert perago("cancel", run).code == 0


@pytest.mark.parametrize("command", ["watch", "cancel", "restart"])
@pytest.mark.parametrize("name", ["no-such", "", "[red]:fire:", "x" * 3000])
def test_an_unknown_id_gets_one_sentence(inside: Perago, command: str, name: str) -> None:
    answer = inside(command, name)
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert "there is no run" in answer.err
    assert "CONDUCTOR_SERVER_URL" in answer.err
    assert not Path(".perago").exists(), "looking makes nothing"
