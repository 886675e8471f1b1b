"""A person's step on real Conductor and real lakeFS: done, given up, killed, on a bad network."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from perago.dev import ConductorEndpoint, LakeFSEndpoint
from tests import injection
from tests.faults.proxy import Fault, LoseAnswer, Proxy, ResetBefore, Rule, Say
from tests.human.project import contents, snapshot
from tests.human.served import ServedProject

CORRECT = "${correct.output.workspace}"


def test_q11_a_step_is_taken_submitted_and_approved(served: ServedProject) -> None:
    workflow, workspace = served.start(
        served.step("correct"), served.step("release", CORRECT, base=workspace_ref())
    )
    task = served.waiting(workflow)
    (listed,) = [
        each
        for each in served.perago("human", "list", "--json").json
        if each["workflow_id"] == workflow
    ]
    assert (listed["task_id"], listed["where"], listed["claimed_by"]) == (task, "conductor", [])
    refused = served.perago("human", "take", task, "fix")
    assert (refused.code, "--tasks" in refused.err) == (2, True)
    files = served.done("fix", task)
    assert served.perago("human", "show", task, "-t", "songs.toml", "--json").json[
        "claimed_by"
    ] == ["ada"]
    said = served.perago("human", "submit", "fix", "-r", "verses=2", "--json")
    assert said.code == 0, said
    head = served.head(workspace)
    assert head.metadata["perago.person"] == "ada"
    assert said.json["output"]["workspace"]["ref"] == head.id
    assert served.files(workspace) == contents(files)

    task = served.waiting(workflow)
    shown = served.perago("human", "show", task, "-t", "songs.toml", "--json").json["difference"]
    assert (shown["base"], shown["ref"]) == (workspace["ref"], head.id)
    assert (shown["added"], shown["removed"]) == (["lyrics.txt"], ["other.txt"])
    said = served.perago("human", "approve", task, "--yes", "-t", "songs.toml")
    assert said.code == 0, said
    ended = served.stage.completed(workflow)
    assert ended["tasks"][0]["outputData"]["person"] == "ada"
    assert ended["tasks"][1]["outputData"]["result"]["ref"] == head.id


def workspace_ref() -> str:
    return "${workflow.input.workspace.ref}"


def test_q12_a_rejected_step_waits_again_and_the_edits_go_on(served: ServedProject) -> None:
    workflow, workspace = served.start(served.step("correct"))
    files = served.done("fix", task := served.waiting(workflow))
    before = snapshot(files)
    said = served.perago(
        "human", "reject", task, "--reason", "again", "-t", "songs.toml", person="ben"
    )
    assert said.code == 0, said
    again = served.waiting(workflow, retry=1)
    lost = served.perago("human", "submit", "fix")
    assert (lost.code, again[:8] in lost.err) == (1, True), lost
    assert served.head(workspace).id == workspace["ref"]
    taken = served.take(again, "again", "--edits", "fix")
    assert contents(taken) == contents(files)
    assert snapshot(files) == before
    assert served.perago("human", "submit", "again").code == 0
    assert served.stage.tasks(workflow) == [("FAILED", 0), ("COMPLETED", 1)]


def test_q12_the_workflow_ends_while_a_person_edits(served: ServedProject) -> None:
    workflow, workspace = served.start(served.step("correct"))
    files = served.done("fix", served.waiting(workflow))
    before = snapshot(files)
    assert served.perago("cancel", workflow).code == 0
    said = served.perago("human", "submit", "fix")
    assert (said.code, "your files are untouched" in said.err) == (1, True), said
    assert (served.head(workspace).id, snapshot(files)) == (workspace["ref"], before)


@pytest.mark.parametrize("fence", ["head", "lineage"])
def test_q11_a_submit_that_is_killed_is_repeated_and_loses_nothing(
    tmp_path: Path,
    conductor_server: ConductorEndpoint,
    lakefs_server: LakeFSEndpoint,
    fence: str,
) -> None:
    served = ServedProject(tmp_path, conductor_server, lakefs_server, fence)
    points = ["committed", "applied", "before report"]
    points += ["before body", "after first attempt fence", "branch created", "before publish"]
    for number, point in enumerate(points if fence == "head" else points[:3]):
        workflow, workspace = served.start(served.step("correct"))
        files = served.done(f"fix{number}", served.waiting(workflow))
        before = snapshot(files)
        place = f"correct:0:{point}"
        said = served.project.killed(place, "human", "submit", f"fix{number}")
        assert injection.OFF or said.code == -signal.SIGKILL, (point, said)
        assert snapshot(files) == before
        head = served.head(workspace)
        assert head.id == workspace["ref"] or head.parent == workspace["ref"]
        (files / "lyrics.txt").write_text("again\n")
        said = served.perago("human", "submit", f"fix{number}")
        assert said.code == 0, (point, said)
        assert served.files(workspace) == contents(files)
        if fence == "head":
            assert served.head(workspace).parent == workspace["ref"], "never A -> H -> C"
        assert served.stage.tasks(workflow) == [("COMPLETED", 0)]
    served.close()


FAULTS: dict[str, Callable[[], Fault]] = {
    "lost": LoseAnswer,
    "reset": ResetBefore,
    "500": lambda: Say(500),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_q11_the_network_fails_at_every_call_of_a_submit(
    tmp_path: Path, conductor_server: ConductorEndpoint, lakefs_server: LakeFSEndpoint, fault: str
) -> None:
    """Whatever it says, the person's files are intact, and a second submit completes the step."""
    served = ServedProject(tmp_path, conductor_server, lakefs_server)
    with (
        Proxy(conductor_server.url.removesuffix("/api")) as engine,
        Proxy(lakefs_server.endpoint.removesuffix("/api/v1")) as store,
    ):
        away = {
            "CONDUCTOR_SERVER_URL": f"{engine.url}/api",
            "LAKECTL_SERVER_ENDPOINT_URL": store.url,
        }
        workflow, _ = served.start(served.step("correct"))
        served.done("fix", served.waiting(workflow))
        assert served.perago("human", "submit", "fix", more=away).code == 0
        counts = len(engine.seen), len(store.seen)
        for proxy, count in zip((engine, store), counts, strict=True):
            for call in range(count):
                _spoiled(served, proxy, call, fault, away)
        assert engine.problems + store.problems == []
    served.close()


def _spoiled(
    served: ServedProject, proxy: Proxy, call: int, fault: str, away: dict[str, str]
) -> None:
    workflow, workspace = served.start(served.step("correct"))
    name = f"fix-{proxy.url.rpartition(':')[2]}-{call}"
    files = served.done(name, served.waiting(workflow))
    before = snapshot(files)
    with proxy.during(Rule(FAULTS[fault](), skip=call)):
        said = served.perago("human", "submit", name, more=away)
    assert said.code in {0, 1, 2, 4}, (call, said)
    assert "Traceback" not in said.err, (call, said)
    assert snapshot(files) == before, call
    head = served.head(workspace)
    assert head.id == workspace["ref"] or head.parent == workspace["ref"], call
    if said.code:
        again = served.perago("human", "submit", name)
        assert again.code == 0 or "no longer open" in again.err, (call, said, again)
    assert served.files(workspace) == contents(files), call
    served.stage.completed(workflow)
