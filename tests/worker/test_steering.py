"""``perago submit``, ``watch``, ``cancel`` and ``restart`` on real servers."""

from __future__ import annotations

import json
from typing import Any

from tests.worker.stage import Stage


def register(stage: Stage) -> tuple[str, dict[str, str]]:
    """Register a workflow of one writer; return its name and a workspace."""
    stage.register()
    name = f"flow_{stage.tag}"
    step = {
        "name": f"write_{stage.tag}",
        "taskReferenceName": "write",
        "type": "SIMPLE",
        "inputParameters": {
            "workspace": "${workflow.input.workspace}",
            "params": "${workflow.input.params}",
        },
    }
    flow = {
        "name": name,
        "version": 1,
        "schemaVersion": 2,
        "ownerEmail": "tests@example.com",
        "tasks": [step],
        "outputParameters": {"text": "${write.output.result.text}"},
    }
    (stage.directory / "flow.json").write_text(json.dumps(flow))
    assert stage.perago("register", "deeds", "flow.json").returncode == 0
    return name, stage.workspace({"data/in.txt": b"in"})


def submitted(stage: Stage, *words: str) -> Any:
    done = stage.perago("submit", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_workflow_is_submitted_on_the_head_and_followed(stage: Stage) -> None:
    name, workspace = register(stage)
    stage.start("-j", "1")
    again = str(stage.directory / "again")
    params = json.dumps({"text": "hello", "do": "fail once", "path": again})
    place = ("--repo", workspace["repository"], "-i", f"params={params}")
    seen = stage.perago("submit", name, *place, "--wait")
    assert seen.returncode == 0, seen.stderr
    lines = seen.stdout.splitlines()
    assert lines[0].startswith(f"{name}  workflow ")
    assert "✗ write  " in lines[1]
    assert "not this time" in lines[1]
    assert f"✓ write retry 1  published {stage.head(workspace)[:12]}" in seen.stdout
    assert "text  hello" in seen.stdout
    workflow = lines[0].split()[-1]
    document = json.loads(stage.perago("watch", workflow, "--json").stdout)
    assert (document["where"], document["status"]) == ("conductor", "COMPLETED")
    assert [step["retry_count"] for step in document["steps"]] == [0, 1]
    assert stage.workflow(workflow)["input"]["workspace"] == workspace


def test_a_workflow_is_cancelled_and_restarted_from_the_new_head(stage: Stage) -> None:
    _, workspace = register(stage)
    params = json.dumps({"text": "same"})
    first = submitted(stage, "flow.json", "-r", workspace["repository"], "-i", f"params={params}")
    assert stage.perago("restart", first["id"]).returncode == 2, "it still runs"
    ended = stage.perago("cancel", first["id"], "--json")
    assert json.loads(ended.stdout)["status"] == "TERMINATED"
    assert stage.perago("cancel", first["id"]).returncode == 2
    assert stage.perago("watch", first["id"]).returncode == 1

    stage.store.put(workspace["repository"], "main", "data/more.txt", b"more")
    head = stage.store.commit_branch(workspace["repository"], "main", "more").id
    restarted = stage.perago("restart", first["id"], "--json")
    assert restarted.returncode == 0, restarted.stderr
    second = json.loads(restarted.stdout)
    assert second["id"] != first["id"]
    given = stage.workflow(second["id"])["input"]
    assert given["workspace"] == {**workspace, "ref": head}
    assert given["params"] == {"text": "same"}
    stage.start("-j", "1")
    stage.completed(second["id"])


def test_a_fenced_attempt_names_the_command_that_helps(stage: Stage) -> None:
    _, workspace = register(stage)
    params = json.dumps({"text": "late"})
    first = submitted(stage, "flow.json", "-r", workspace["repository"], "-i", f"params={params}")
    for name in ("one", "two"):  # A single commit on the input could be an abandoned attempt's.
        stage.store.put(workspace["repository"], "main", f"data/{name}.txt", b"other")
        stage.store.commit_branch(workspace["repository"], "main", "somebody else")
    stage.start("-j", "1")
    ended = stage.ended(first["id"])
    assert ended["status"] == "FAILED"
    assert f"perago restart {first['id']}" in ended["tasks"][0]["reasonForIncompletion"]


def test_mistakes_get_one_sentence(stage: Stage) -> None:
    name, workspace = register(stage)
    flow = json.loads((stage.directory / "flow.json").read_text())
    (stage.directory / "other.json").write_text(json.dumps({**flow, "description": "x"}))
    (stage.directory / "new.json").write_text(json.dumps({**flow, "name": "never_" + stage.tag}))
    for words, said in (
        (("submit", "no-such-workflow"), "perago register"),
        (("submit", name), "--repo"),
        (("submit", name, "--repo", "no-such"), "no-such"),
        (("submit", name, "--repo", workspace["repository"], "-b", "nope"), "nope"),
        (("submit", "other.json"), "not as it is registered"),
        (("submit", "new.json"), "is not registered"),
        (("submit", "missing.json"), "does not exist"),
        (("watch", "no-such-workflow"), "whole id"),
        (("cancel", "no-such-workflow"), "whole id"),
        (("restart", "no-such-workflow"), "whole id"),
    ):
        done = stage.perago(*words)
        assert done.returncode == 2, done
        assert done.stderr.count("\n") == 1, done.stderr
        assert said in done.stderr
