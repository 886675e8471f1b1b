"""Fence ``lineage`` on a real lakeFS, rule by rule (K2, K4, K6)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from perago import WorkspaceSpec, task
from perago.protocol.lineage import MAX_RANGE
from perago.protocol.values import Status
from perago.testing import MoveHeadAt, Run
from tests.lakefs.bench import BRANCH, Bench
from tests.lakefs.hard import ask
from tests.lakefs.tasks import CONTROLS, GIVEN, OWNER, Done, Text, after

MOODS = {"idle": False, "text": ""}


@task(
    name="lineal",
    owner_email=OWNER,
    workspace=WorkspaceSpec(prefix="ws", fence="lineage"),
    controls=CONTROLS,
)
def step(workspace: Path, params: Text) -> Done:
    """Add a file, remove one, leave one; or leave all, when in an idle mood."""
    if not MOODS["idle"]:
        (workspace / "out.txt").write_text(str(MOODS["text"] or params.text))
        (workspace / "old.txt").unlink(missing_ok=True)
    return Done(files=2)


@pytest.fixture(autouse=True)
def _usual_mood() -> Iterator[None]:
    yield
    MOODS.update(idle=False, text="")


@pytest.fixture
def a(bench: Bench) -> str:
    return bench.given(GIVEN).id


@pytest.fixture
def published(bench: Bench, a: str) -> Run:
    """Give a publication that the broker never accepted."""
    run = bench.run(step, text="first")
    assert run.completed, run.reason
    return run


def test_k2_the_first_publication_says_everything_and_supersedes_nothing(
    bench: Bench, a: str, published: Run
) -> None:
    said = bench.head.metadata
    attempt = published.attempt
    assert bench.head.parents == (a,)
    assert said["perago.phase"] == "confirm"
    assert said["perago.logical_task_key"] == attempt.logical_task_key
    assert said["perago.task_id"] == attempt.task_id
    assert said["perago.retry_count"] == "0"
    assert said["perago.input_ref"] == said["perago.expected_head"] == a
    assert (said["perago.target_branch"], said["perago.prefix"]) == (BRANCH, "/ws")
    assert said["perago.staging_branch"].startswith("perago-staging-")
    assert bench.is_commit(said["perago.staging_commit"])
    assert said["perago.supersedes"] == ""


def test_k2_a_retry_publishes_on_what_its_step_published_and_supersedes_it(
    bench: Bench, a: str, published: Run
) -> None:
    MOODS["text"] = "second"
    run = published.retry()
    assert run.completed, run.reason
    newest, oldest = bench.history(a)
    assert (newest.id, oldest.id) == (run.ref, published.ref)
    assert newest.metadata["perago.supersedes"] == published.ref
    assert newest.metadata["perago.expected_head"] == published.ref
    assert newest.metadata["perago.input_ref"] == a
    assert bench.files() == after("second")
    assert bench.staging_branches() == []


def test_k2_a_retry_of_a_retry_goes_on_and_on(bench: Bench, a: str, published: Run) -> None:
    run = published
    for number in range(3):
        MOODS["text"] = f"again {number}"
        run = run.retry()
        assert run.completed, run.reason
    assert len(bench.history(a)) == 4
    assert bench.files() == after("again 2")


def test_k2_a_retry_that_makes_the_same_completes_with_the_head(
    bench: Bench, a: str, published: Run
) -> None:
    run = published.retry()
    assert run.completed, run.reason
    assert run.ref == bench.head.id == published.ref


def test_k2_without_a_change_the_branch_stays_or_is_taken_back(
    bench: Bench, a: str, published: Run
) -> None:
    MOODS["idle"] = True
    run = published.retry()
    assert run.completed, run.reason
    assert run.ref == bench.head.id == a
    kept = run.retry()
    assert kept.ref == bench.head.id == a


@pytest.mark.parametrize("idle", [False, True], ids=["change", "no change"])
def test_k2_a_strangers_commit_in_the_range_is_refused(
    bench: Bench, a: str, published: Run, idle: bool
) -> None:
    bench.truth.put(bench.repository, BRANCH, "foreign.txt", b"foreign")
    stranger = bench.truth.commit_branch(bench.repository, BRANCH, "foreign").id
    MOODS["idle"] = idle
    run = published.retry()
    assert run.status is Status.FAILED
    assert f"left no logical task key in commit {stranger}" in run.reason
    assert bench.head.id == stranger


def test_k2_another_workflow_is_named(bench: Bench, a: str, published: Run) -> None:
    other = bench.run(step, text="other")  # Its A is what the first one published.
    assert other.completed, other.reason
    late = published.retry()
    assert f"advanced by step {other.attempt.logical_task_key}" in late.reason
    assert bench.head.id == other.ref


def test_k2_an_input_that_left_the_history_is_refused(bench: Bench, a: str, published: Run) -> None:
    root = list(bench.truth.history(bench.repository, BRANCH))[-1].id
    ask(bench, "PUT", "branches", BRANCH, "hard_reset", query={"ref": root})
    run = published.retry()
    assert "no longer contains workspace input ref" in run.reason
    assert bench.head.id == root


def test_k2_a_head_that_moves_while_it_stages_is_refused(bench: Bench, a: str) -> None:
    run = bench.lab.run(step, faults=[MoveHeadAt("after stage")])
    assert run.status is Status.FAILED
    assert bench.head.message == "a stranger's commit"


def test_k2_the_range_is_read_for_1024_commits_and_no_further(
    bench: Bench, a: str, published: Run
) -> None:
    said = {"perago.logical_task_key": published.attempt.logical_task_key}
    for number in range(MAX_RANGE - 1):
        body = {"message": str(number), "metadata": said, "allow_empty": True}
        ask(bench, "POST", "branches", BRANCH, "commits", body=body)
    MOODS["text"] = "the last that fits"
    last = published.retry()
    assert last.completed, last.reason
    MOODS["text"] = "one too many"
    refused = last.retry()
    assert "advanced beyond supported publish range" in refused.reason
    assert bench.head.id == last.ref
