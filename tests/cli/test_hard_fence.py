"""The hard fence on lakeFS from the command line (K3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from perago.app.cleanup import finish_replacements, forgotten_scratch
from perago.dev import LakeFSEndpoint
from perago.stores.lakefs.action import KEY, render
from perago.stores.lakefs.client import Ask
from perago.stores.lakefs.errors import Call
from perago.transfer.wire import path_of
from tests.cli.conftest import Perago
from tests.lakefs_lab import ArrangedLakeFS, new_name

MODULE = """
from pathlib import Path
from pydantic import BaseModel
from perago import RetryPolicy, TaskControls, WorkspaceSpec, task

class Nothing(BaseModel):
    pass

FENCED = WorkspaceSpec(prefix="ws", fence="hard")
ONCE = TaskControls(retry=RetryPolicy(count=0))

@task(name="careful", owner_email="t@example.com", workspace=FENCED, controls=ONCE)
def careful(workspace: Path, params: Nothing) -> Nothing:
    (workspace / "done.txt").write_text("done")
    return Nothing()
"""
RUN = ("run", "careful:careful", "--store", "lakefs", "--repo")


@pytest.fixture
def server(
    lakefs_server: LakeFSEndpoint, project: Path, tmp_path_factory: pytest.TempPathFactory
) -> ArrangedLakeFS:
    """Configure the project for a server, and look at it from beside."""
    (project / ".env").write_text(
        f"LAKECTL_SERVER_ENDPOINT_URL={lakefs_server.endpoint}\n"
        f"LAKECTL_CREDENTIALS_ACCESS_KEY_ID={lakefs_server.access_key_id}\n"
        f"LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY={lakefs_server.secret}\n"
        f"PERAGO_CACHE_ROOT={project / 'cache'}\n"
    )
    (project / "careful.py").write_text(MODULE)
    return ArrangedLakeFS(lakefs_server, tmp_path_factory.mktemp("looker"))


@pytest.fixture
def repository(perago: Perago, server: ArrangedLakeFS) -> str:
    """Make a repository with a file, not yet fenced."""
    name = new_name()
    assert perago("repo", "init", name, "--json").json["fence"] is None
    server.put(name, "main", "ws/given.txt", b"given")
    server.commit_branch(name, "main", "given")
    return name


def leave_half(server: ArrangedLakeFS, repository: str) -> tuple[str, str]:
    """Leave the first half of a replacement; returns the head and what is intended."""
    head = server.head(repository, "main")
    assert head.parent
    said = {"perago.intent": "replace", "perago.expected_head": head.id}
    body = {"metadata": said, "strategy": "source-wins", "allow_empty": True}
    path = path_of("repositories", repository, "refs", head.parent, "merge", "main")
    server.client.ask(Ask("arrange", "POST", path, Call.PUBLISH, body=body))
    return server.head(repository, "main").id, head.parent


def test_an_existing_repository_is_fenced_once_and_a_task_publishes_under_it(
    perago: Perago, server: ArrangedLakeFS, repository: str
) -> None:
    refused = perago(*RUN, repository)
    assert refused.code == 1
    assert f"perago repo init --fence hard {repository} --branch main" in refused.out

    fenced = perago("repo", "init", repository, "--fence", "hard")
    assert fenced.code == 0, fenced
    assert f"{KEY} is installed" in fenced.out
    assert "fence hard was tried and holds on main" in fenced.out
    head = server.head(repository, "main")
    again = perago("repo", "init", repository, "--fence", "hard", "--json")
    assert again.json["fence"] == {"action": "nothing", "branches": ["main"]}
    assert again.json["head"] == head.id
    with server.open_object(repository, "main", KEY) as action:
        assert action.read().decode() == render(["main"])

    run = perago(*RUN, repository, "--json")
    assert run.code == 0, run
    published = server.head(repository, "main")
    assert published.parents == (head.id,)
    inspected = perago("inspect", published.metadata["perago.task_id"])
    assert "fence hard held" in inspected.out
    assert [branch.name for branch in server.branches(repository, hidden=True)] == ["main"]


def test_doctor_tries_the_fence_and_finds_what_is_unfinished(
    perago: Perago, server: ArrangedLakeFS, repository: str
) -> None:
    without = perago("doctor", "--repo", repository)
    assert f"- fence hard on {repository}: tasks with fence='hard' are refused" in without.out
    perago("repo", "init", repository, "--fence", "hard")
    assert "it holds on main" in perago("doctor", "--repo", repository).out
    server.put(repository, "main", "ws/more.txt", b"more")
    server.commit_branch(repository, "main", "more")
    leave_half(server, repository)
    found = perago("doctor", "--repo", repository)
    assert "unfinished replacements on main" in found.out
    assert f"perago gc --repo {repository} --delete" in found.out


def test_doctor_says_when_the_action_was_changed(
    perago: Perago, server: ArrangedLakeFS, repository: str
) -> None:
    server.put(repository, "main", KEY, render(["main"]).encode() + b"# mine\n")
    server.commit_branch(repository, "main", "changed")
    found = perago("doctor", "--repo", repository)
    assert found.code == 1
    assert f"{KEY} was changed" in found.out


def test_k3_v7_what_gc_does_completes_replacements_and_drops_old_scratch_branches(
    perago: Perago, server: ArrangedLakeFS, repository: str
) -> None:
    perago("repo", "init", repository, "--fence", "hard")
    half, intended = leave_half(server, repository)
    assert finish_replacements(server, repository, dry_run=True) == ["main"]
    assert server.head(repository, "main").id == half
    assert finish_replacements(server, repository, dry_run=False) == ["main"]
    assert server.head(repository, "main").id == intended
    assert finish_replacements(server, repository, dry_run=False) == []

    for name in ("perago-probe-1-dead", "perago-probe-99999999999-new", "perago-probe-mine"):
        path = path_of("repositories", repository, "branches")
        body = {"name": name, "source": "main", "hidden": True}
        server.client.ask(Ask("arrange", "POST", path, Call.PRIVATE, body=body, plain=True))
    forgotten = list(forgotten_scratch(server, repository, 3600.0))
    assert forgotten == [(repository, "perago-probe-1-dead")]


def test_k4_log_and_inspect_tell_an_unfinished_replacement_from_a_publication(
    perago: Perago, server: ArrangedLakeFS, repository: str
) -> None:
    perago("repo", "init", repository, "--fence", "hard")
    assert perago(*RUN, repository).code == 0
    published = server.head(repository, "main")
    where = ("--store", "lakefs")
    told = perago("log", repository, *where, "--json").json["publications"]
    assert [entry["commit"] for entry in told[:2]] == [published.id, published.parent]
    assert told[0]["unfinished"] is False
    half, intended = leave_half(server, repository)
    shown = perago("log", repository, *where)
    assert f"{half[:12]}" in shown.out
    assert f"unfinished replacement by {intended[:12]}" in shown.out
    inspected = perago("inspect", half, "--repo", repository, *where)
    assert "perago.intent = replace" in inspected.out
    assert perago("log", *where).code == 2
