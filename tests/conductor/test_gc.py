"""``perago gc --repo``: staging branches of attempts that are over, asked of Conductor (W5, V7)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from perago.brokers.conductor.client import ConductorClient
from perago.dev import ConductorEndpoint, LakeFSEndpoint
from perago.protocol.audit import staged_metadata
from perago.protocol.names import staging_branch
from perago.protocol.values import Attempt, Claim, Staging, WorkspaceInput
from perago.stores.lakefs.client import Ask
from perago.stores.lakefs.errors import Call
from perago.transfer.wire import path_of
from tests.conductor.commands import Shell, shell
from tests.conductor.lab import Lab
from tests.lakefs_lab import ArrangedLakeFS, new_name


@pytest.fixture
def store(lakefs_server: LakeFSEndpoint, tmp_path: Path) -> Iterator[ArrangedLakeFS]:
    store = ArrangedLakeFS(lakefs_server, tmp_path / "truth")
    yield store
    store.close()


@pytest.fixture
def repository(store: ArrangedLakeFS) -> str:
    name = new_name()
    store.create_repository(name)
    return name


@pytest.fixture
def place(
    tmp_path: Path, conductor_server: ConductorEndpoint, lakefs_server: LakeFSEndpoint
) -> Shell:
    directory = tmp_path / "place"
    directory.mkdir()
    return shell(directory, conductor_server, lakefs_server)


def leave(
    store: ArrangedLakeFS, repository: str, attempt: Attempt, *, committed: bool = False
) -> str:
    """Leave a staging branch as an executor does that is killed while it stages."""
    base = store.head(repository, "main").id
    claim = Claim(attempt, {}, uuid.uuid4().hex)
    staging = Staging(repository, staging_branch(attempt, claim.execution_id))
    store.open_staging(staging, base)
    if committed:
        store.put(repository, staging.branch, "out.txt", b"out")
        workspace = WorkspaceInput(repository, "main", "commit", base)
        metadata = staged_metadata(claim, workspace, "", staging)
        store.commit_branch(repository, staging.branch, "try", metadata)
    return staging.branch


def branches(store: ArrangedLakeFS, repository: str) -> set[str]:
    return {branch.name for branch in store.branches(repository, hidden=True)} - {"main"}


def stranger() -> Attempt:
    """Make an attempt that Conductor has never heard of."""
    return Attempt(str(uuid.uuid4()), str(uuid.uuid4()), 0, "step", "count")


@pytest.mark.parametrize("committed", [False, True])
def test_v7_only_branches_of_attempts_that_are_over_go(
    place: Shell, store: ArrangedLakeFS, repository: str, lab: Lab, committed: bool
) -> None:
    ended, running = lab.attempt(), lab.attempt()
    lab.truth.terminate(ended.workflow_instance_id, "an operator")
    dead = leave(store, repository, ended, committed=committed)
    alive = leave(store, repository, running, committed=committed)
    unknown = leave(store, repository, stranger(), committed=committed)

    looked = place.perago("gc", "--repo", repository, "--json")
    assert looked.code == 0, looked.err
    assert looked.json["branches"] == [f"{repository}/{dead}"]
    assert set(looked.json["kept"]) == {f"{repository}/{alive}", f"{repository}/{unknown}"}
    assert branches(store, repository) == {dead, alive, unknown}

    done = place.perago("gc", "--repo", repository, "--delete")
    assert "staging branches: 1" in done.out
    assert "its task is IN_PROGRESS" in done.out
    assert branches(store, repository) == {alive, unknown}

    place.perago("gc", "-r", repository, "--staging-age", "0s", "--delete")
    assert branches(store, repository) == {alive}


def test_v7_an_attempt_given_to_a_retry_is_over(
    place: Shell, store: ArrangedLakeFS, repository: str, lab: Lab
) -> None:
    first = lab.attempt()
    lab.truth.update(
        {
            "workflowInstanceId": first.workflow_instance_id,
            "taskId": first.task_id,
            "status": "FAILED",
        }
    )
    leave(store, repository, first)
    place.perago("gc", "-r", repository, "--delete")
    assert branches(store, repository) == set()


def test_k3_an_unfinished_replacement_is_completed(
    place: Shell, store: ArrangedLakeFS, repository: str
) -> None:
    """Somebody died between the halves of a replacement under fence ``hard``."""
    base = store.head(repository, "main")
    store.put(repository, "main", "out.txt", b"abandoned")
    head = store.commit_branch(repository, "main", "abandoned").id
    path = path_of("repositories", repository, "refs", base.id, "merge", "main")
    body = {"metadata": {"perago.intent": "replace"}, "allow_empty": True}
    store.client.ask(Ask("arrange", "POST", path, Call.PUBLISH, body=body))
    assert store.head(repository, "main").parents == (head, base.id)

    looked = place.perago("gc", "--repo", repository, "--json")
    assert looked.json["unfinished"] == [f"{repository}/main"]
    done = place.perago("gc", "--repo", repository, "--delete")
    assert f"completed the unfinished replacement on {repository}/main" in done.out
    assert store.head(repository, "main").id == base.id


def test_g2_without_an_answer_of_conductor_nothing_goes(
    place: Shell, store: ArrangedLakeFS, repository: str
) -> None:
    kept = leave(store, repository, stranger())
    place.environment["CONDUCTOR_SERVER_URL"] = "http://127.0.0.1:9"
    ran = place.perago("gc", "-r", repository, "--staging-age", "0s", "--delete")
    assert ran.code == 4
    assert "no answer from Conductor" in ran.err
    del place.environment["CONDUCTOR_SERVER_URL"]
    ran = place.perago("gc", "-r", repository, "--delete")
    assert ran.code == 3
    assert branches(store, repository) == {kept}


def test_a_bad_age_and_an_unknown_repository_are_one_sentence(
    place: Shell, truth: ConductorClient
) -> None:
    assert "30s" in place.perago("gc", "-r", "x", "--staging-age", "soon").err
    ran = place.perago("gc", "-r", "no-such-repository")
    assert ran.code == 4
    assert "no-such-repository" in ran.err
    assert "Traceback" not in ran.err
