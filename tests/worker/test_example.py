"""The pipeline of ``make run``, unchanged, under a real Conductor on a real lakeFS."""

from __future__ import annotations

from pathlib import Path

from tests.worker.stage import Stage

ROOT = Path(__file__).parents[2]
MODULE = "examples.trips.tasks"


def test_the_same_workflow_file_and_tasks_run_on_servers(stage: Stage) -> None:
    """As docs/howto/run-the-example-on-servers.md tells it."""
    stage.settings["PYTHONPATH"] = str(ROOT)
    done = stage.perago("register", MODULE, str(ROOT / "examples/trips/workflow.json"))
    assert done.returncode == 0, done.stdout + done.stderr
    workspace = stage.workspace()
    worker = stage.start("-j", "1", module=MODULE)
    given = {"workspace": workspace, "batch": 1, "rows": 2000}
    ended = stage.completed(stage.client.start_workflow("trips", given, 1))
    outputs = [task["outputData"] for task in ended["tasks"]]
    assert len(outputs) == 7
    assert outputs[-1]["workspace"]["ref"] == stage.head(workspace)
    assert any(each["table"] == "silver/trips" for out in outputs for each in out.get("guards", ()))
    listed = stage.store.listing(workspace["repository"], "main", "")
    tables = {found.key.partition("/")[0] for found in listed}
    assert {"bronze", "silver", "gold"} <= tables
    assert worker.stop() == 0
    assert stage.attempt_dirs() == []
    assert stage.staging(workspace) == []
