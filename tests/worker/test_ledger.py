"""K5 with real Conductor and lakeFS: workers killed after they published; the retry adopts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.ledger.postgres import PASSWORD, postgres_server
from tests.worker.stage import Stage, eventually


@pytest.fixture(params=["sqlite", "postgresql"])
def kept(stage: Stage, request: pytest.FixtureRequest) -> Iterator[Stage]:
    """Give a stage whose workers keep a ledger."""
    if request.param == "sqlite":
        stage.settings["PERAGO_LEDGER"] = f"sqlite://{stage.directory}/ledger.sqlite"
        yield stage
        return
    with postgres_server() as server:
        stage.settings["PERAGO_LEDGER"] = server.address
        yield stage


def recorded(stage: Stage) -> list[dict[str, Any]]:
    """Return the executions of the ledger, oldest first."""
    shown = stage.perago("ledger", "show", "--json")
    assert shown.returncode == 0, shown.stderr
    found = json.loads(shown.stdout)["executions"]
    assert isinstance(found, list)
    return found[::-1]


def test_k5_a_worker_killed_before_it_reports_is_followed_by_an_adoption(kept: Stage) -> None:
    """The same fault that without a ledger ends in a replacement (test_kill)."""
    settings = {"DEEDS_RESPONSE": "10"}  # Long enough for a busy machine.
    kept.register(**settings)
    workspace = kept.workspace()
    workflow = kept.run("write", workspace=workspace)
    deadly = settings | {"PERAGO_KILL_AT": "write:0:before report"}
    first = kept.start("-j", "1", ready=False, **deadly)
    eventually(lambda: first.process.poll() is not None, "the death of the worker")
    abandoned = kept.head(workspace)
    assert abandoned != workspace["ref"]
    second = kept.start("-j", "1", ready=True, **settings)
    ended = kept.completed(workflow)
    assert kept.tasks(workflow) == [("TIMED_OUT", 0), ("COMPLETED", 1)]
    assert ended["tasks"][1]["outputData"]["workspace"]["ref"] == abandoned
    assert kept.history(workspace) == [abandoned]
    eventually(lambda: recorded(kept)[-1]["state"] == "completed", "the last word in the ledger")
    died, adopter = recorded(kept)
    assert (died["decision"], died["state"]) == ("merge", "completion unknown")
    assert adopter["decision"] == "adopt"
    assert adopter["ref"] == died["ref"] == abandoned
    assert adopter["output"]["result"] == ended["tasks"][1]["outputData"]["result"]
    assert second.stop() == 0
    assert kept.attempt_dirs() == []
    logs = [path.read_text() for path in (kept.directory / "logs").glob("*")]
    assert not [text for text in logs if PASSWORD in text]


def test_k5_r3_an_executor_killed_after_publish_failed_and_its_publication_is_adopted(
    stage: Stage,
) -> None:
    stage.settings["PERAGO_LEDGER"] = f"sqlite://{stage.directory}/ledger.sqlite"
    stage.register()
    workspace = stage.workspace()
    workflow = stage.run("write", workspace=workspace)
    worker = stage.start("-j", "1", PERAGO_KILL_AT="write:0:after publish")
    ended = stage.completed(workflow)
    assert stage.tasks(workflow) == [("FAILED", 0), ("COMPLETED", 1)]
    published = ended["tasks"][1]["outputData"]["workspace"]["ref"]
    assert stage.history(workspace) == [published]
    assert worker.stop() == 0
    assert [(each["decision"], each["state"], each["ref"]) for each in recorded(stage)] == [
        ("merge", "failed", published),
        ("adopt", "completed", published),
    ]
    assert stage.staging(workspace) == []
