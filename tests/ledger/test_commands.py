"""The ledger on the command line: a run that is killed, adopted, and looked at afterwards."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.environment import clean_environment
from tests.patience import LIMIT


class Desk:
    """A project of its own, with a ledger."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "demo"
        self.ledger = f"sqlite://{directory}/ledger.sqlite"
        self.perago("init", str(self.directory))

    def perago(
        self, *words: str, status: int = 0, also: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "perago", *words],
            cwd=self.directory if self.directory.exists() else self.directory.parent,
            env={**clean_environment(), "PERAGO_LEDGER": self.ledger, **(also or {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done

    def asked(self, *words: str) -> Any:
        return json.loads(self.perago(*words, "--json").stdout)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """Give a project in which a step was killed after it published, and then adopted."""
    made = Desk(tmp_path_factory.mktemp("desk"))
    deadly = {"PERAGO_KILL_AT": "count:0:before report"}
    made.perago("run", "workflow.json", "tasks", "--from", "data", also=deadly)
    return made


def test_k5_a_local_run_adopts_what_its_killed_executor_published(desk: Desk) -> None:
    adopter, died = desk.asked("ledger", "show")["executions"]
    assert (died["decision"], died["state"]) == ("merge", "completion unknown")
    assert (adopter["decision"], adopter["state"]) == ("adopt", "completed")
    assert adopter["ref"] == died["ref"]
    assert adopter["output"] == died["output"]
    history = desk.asked("log")["publications"]
    assert history[0]["commit"] == died["ref"]
    assert history[0]["adopted_by"] == [adopter["task_id"]]
    assert history[0]["replaced"] == []


def test_log_and_inspect_say_who_adopted_what(desk: Desk) -> None:
    assert "adopted" in desk.perago("log").stdout
    adopter, died = desk.asked("ledger", "show")["executions"]
    told = desk.perago("inspect", adopter["execution_id"]).stdout
    assert f"which execution {died['execution_id']} had published" in told
    (story,) = desk.asked("inspect", adopter["execution_id"])["executions"]
    assert story["adopted"]["ref"] == adopter["ref"]
    assert story["decision"]["kind"] == "adopt"


def test_the_ledger_can_be_cut_to_what_is_looked_for(desk: Desk) -> None:
    found = desk.asked("ledger", "show")["executions"]
    assert len(desk.asked("ledger", "show", "--limit", "1")["executions"]) == 1
    workflow = found[0]["workflow_instance_id"]
    assert desk.asked("ledger", "show", "--workflow", workflow[:8])["executions"] == found
    assert desk.asked("ledger", "show", "--repository", "words")["executions"] == found
    assert desk.asked("ledger", "show", "--repo", "other")["executions"] == []
    table = desk.perago("ledger", "show").stdout
    assert found[0]["ref"][:12] in table
    assert "completion unknown" in table


def test_check_and_doctor_mention_the_ledger(desk: Desk) -> None:
    assert desk.asked("check", "tasks")["configuration"]["ledger"] == desk.ledger
    (found,) = [f for f in desk.asked("doctor")["findings"] if f["what"] == "ledger"]
    assert found["health"] == "good"
    assert "2 executions" in found["detail"]


def test_a_ledger_that_is_down_is_doubtful_and_its_password_is_not_shown(desk: Desk) -> None:
    down = {"PERAGO_LEDGER": "postgresql://u:canary-1@127.0.0.1:1/d"}
    said = desk.perago("doctor", "--json", also=down).stdout
    (found,) = [f for f in json.loads(said)["findings"] if f["what"] == "ledger"]
    assert found["health"] == "doubtful"
    shown = desk.perago("ledger", "show", status=4, also=down)
    checked = desk.perago("check", "tasks", also=down).stdout
    assert "postgresql://127.0.0.1:1/d" in checked
    assert "canary" not in said + shown.stdout + shown.stderr + checked


def test_without_a_ledger_there_is_nothing_to_show(desk: Desk) -> None:
    done = desk.perago("ledger", "show", status=3, also={"PERAGO_LEDGER": ""})
    assert "there is no ledger" in done.stderr
