"""Whole attempts under fence ``hard`` on a real lakeFS (K3, K6, P2, N2, S3, V1-V5)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from perago.dev import LakeFSEndpoint, servers, start
from perago.errors import (
    LostRaceError,
    PermissionRefusedError,
    RuntimeConfigError,
    UnpublishableFileError,
)
from perago.ports import Publication, Put
from perago.protocol.publication import Merge, Replace
from perago.protocol.values import Staging, Status, WorkspaceInput
from perago.stores.lakefs import moves
from perago.stores.lakefs.action import KEY, render
from perago.stores.lakefs.installing import InstallAction, install_fence
from perago.testing import POINTS, FailAt, MoveHeadAt, Run
from tests.contract.backend import entry_of
from tests.faults.proxy import Hang, Pass, ResetBefore, Rule
from tests.lakefs import tasks
from tests.lakefs.bench import BRANCH, Bench
from tests.lakefs.hard import (
    MOODS,
    ask,
    assert_published,
    assert_tidy,
    fenced,
    files,
    intend,
    step,
)
from tests.lakefs.tasks import GIVEN, after
from tests.lakefs_lab import ArrangedLakeFS, new_name
from tests.patience import LIMIT, until

THEIRS = """\
name: theirs
on:
  pre-merge:
    branches: [elsewhere]
hooks:
  - id: theirs
    type: lua
    properties:
      script: print("theirs")
"""


@pytest.fixture
def a(bench: Bench) -> str:
    return fenced(bench)


@pytest.fixture
def idle() -> Iterator[None]:
    """Let the task change nothing from now on."""
    MOODS["idle"] = True
    yield
    MOODS["idle"] = False


# --- what it does -------------------------------------------------------------------------------


def test_p1_a_change_is_published_and_the_result_says_that_hard_held(bench: Bench, a: str) -> None:
    assert_published(bench, a, bench.run(step))


def test_k4_the_published_commit_says_on_which_head_it_was_made(bench: Bench, a: str) -> None:
    run = bench.run(step)
    assert bench.head.metadata["perago.expected_head"] == a
    assert bench.head.metadata["perago.execution_id"] == run.execution_id


def test_p2_the_replaced_commit_leaves_the_history_and_stays_readable(bench: Bench, a: str) -> None:
    first = bench.run(step)  # Completed, and the broker never heard of it.
    old = bench.head
    assert_published(bench, a, first.retry())
    assert bench.head.id != old.id
    assert bench.is_commit(old.id)  # P10


@pytest.mark.usefixtures("idle")
def test_n1_nothing_changed_keeps_the_branch(bench: Bench, a: str) -> None:
    run = bench.run(step)
    assert run.completed, run.reason
    assert run.ref == bench.head.id == a


def test_k3_a_branch_is_not_moved_back_to_a_merge(bench: Bench, a: str) -> None:
    """A has two parents: a reset to "main^2" that came twice would land on the second of them."""
    for name in ("left", "right"):  # The action guards the target, not these.
        bench.truth.open_staging(Staging(bench.repository, name), a)
        bench.truth.put(bench.repository, name, f"other/{name}.txt", b"x")
        bench.truth.commit_branch(bench.repository, name, name)
    right = bench.truth.head(bench.repository, "right").id
    bench.truth.client.ask(moves.merge(bench.repository, right, "left", {"message": "a merge"}))
    merge = bench.truth.head(bench.repository, "left")
    assert len(merge.parents) == 2
    bench.truth.client.ask(moves.hard_reset(bench.repository, BRANCH, merge.id))
    crashed = bench.lab.run(step, faults=[FailAt("after publish")])
    published = bench.head.id
    MOODS["idle"] = True
    try:
        run = bench.retry(crashed)
    finally:
        MOODS["idle"] = False
    assert run.status is Status.FAILED
    assert "which is a merge of 2 commits" in run.reason
    assert bench.head.id == published
    again = bench.retry(run)  # A replacement ends on C, which has one parent.
    assert again.completed, again.reason
    assert bench.head.parents == (merge.id,)


def test_n2_a_retry_without_changes_moves_the_branch_back(bench: Bench, a: str) -> None:
    first = bench.lab.run(step, faults=[FailAt("after publish")])
    old = bench.head.id
    MOODS["idle"] = True
    try:
        run = first.retry()
    finally:
        MOODS["idle"] = False
    assert run.completed, run.reason
    assert run.outcome
    assert run.outcome.fence == "hard"
    assert run.ref == bench.head.id == a
    assert bench.is_commit(old)


@pytest.mark.parametrize("point", POINTS)
def test_v1_v3_killed_anywhere_the_retry_completes(bench: Bench, a: str, point: str) -> None:
    retried = bench.lab.run(step, faults=[FailAt(point)]).retry()
    assert retried.completed, retried.reason
    (published,) = bench.history(a)
    assert published.id == retried.ref
    assert files(bench) == after()


def test_k3_a_twin_execution_never_replaces_its_brother(bench: Bench, a: str) -> None:
    first = bench.lab.run(step, faults=[FailAt("after publish")])
    twin = bench.lab.again(first)
    assert "twin of this same attempt" in twin.reason
    assert bench.head.metadata["perago.execution_id"] == first.execution_id


def test_k3_a_strangers_commit_is_never_replaced(bench: Bench, a: str) -> None:
    run = bench.lab.run(step, faults=[MoveHeadAt("after stage")])
    assert run.status is Status.FAILED
    assert "was not published by step" in run.reason
    assert bench.content("foreign.txt") == b"foreign"


def test_p8_a_head_that_moves_after_the_last_look_is_refused_by_the_server(
    bench: Bench, a: str
) -> None:
    """The window that ``head`` leaves open (F3): closed."""
    run = bench.lab.run(step, faults=[MoveHeadAt("decision")])
    assert "LostRaceError" in run.reason
    assert bench.head.message == "a stranger's commit"
    assert bench.head.parents == (a,)
    assert_tidy(bench)


def test_p8_the_same_for_a_replacement(bench: Bench, a: str) -> None:
    first = bench.lab.run(step, faults=[FailAt("after publish")])
    abandoned = bench.head.id
    run = first.retry(faults=[MoveHeadAt("decision")])
    assert "LostRaceError" in run.reason
    assert bench.head.parents == (abandoned,)
    assert bench.content("foreign.txt") == b"foreign"


# --- an interrupted replacement -----------------------------------------------------------------

RESET = ("PUT", "/hard_reset")


@pytest.fixture
def interrupted(bench: Bench, a: str) -> Run:
    """Give a replacement that broke off between its halves; the broker has failed the attempt."""
    first = bench.run(step, text="first")
    run = bench.retry(first, Rule(ResetBefore(), *RESET, skip=1, times=None))
    assert run.status is Status.FAILED
    assert "OutcomeUnknownError" in run.reason
    assert len(bench.head.parents) == 2
    assert bench.head.metadata["perago.intent"] == "replace"
    assert bench.head.metadata["perago.execution_id"] == run.execution_id
    return run


@pytest.mark.usefixtures("impatient")
def test_k3_an_interrupted_replacement_is_completed_by_the_next_attempt(
    bench: Bench, a: str, interrupted: Run
) -> None:
    assert_published(bench, a, interrupted.retry(), "first")


@pytest.mark.usefixtures("impatient", "interrupted")
def test_k3_an_interrupted_replacement_is_completed_by_an_attempt_of_another_workflow(
    bench: Bench, a: str
) -> None:
    intended = bench.head.parents[1]
    run = bench.run(step)  # Its A is the half-done head, so it may not publish. But it tidies up.
    assert run.status is Status.FAILED
    assert "is fenced" in run.reason
    assert bench.head.id == intended
    (whole,) = bench.history(a)
    assert whole.parents == (a,)
    assert files(bench) == after("first")  # V4


def test_k3_a_process_killed_between_the_halves_leaves_what_the_next_attempt_completes(
    bench: Bench, a: str, lakefs_server: LakeFSEndpoint
) -> None:
    """A real ``kill -9``, with the second half on its way and never arriving."""
    first = bench.run(step, text="first")
    head = bench.head
    ask(bench, "POST", "branches", body={"name": "again", "source": a}, plain=True)
    bench.truth.put(bench.repository, "again", "ws/out.txt", b"again")
    made = bench.truth.commit_branch(bench.repository, "again", "again", head.metadata).id
    said = {
        "url": bench.proxy.url,
        "key": lakefs_server.access_key_id,
        "secret": lakefs_server.secret,
        "place": str(bench.place / "killed"),
        "repository": bench.repository,
        "head": head.id,
        "source": made,
        "metadata": {"perago.execution_id": "killed"},
    }
    with bench.proxy.during(Rule(Hang(), *RESET, skip=1, times=None)):
        killed = subprocess.Popen(
            [sys.executable, "-m", "tests.lakefs.replacer"], stdin=subprocess.PIPE, text=True
        )
        try:
            assert killed.stdin
            killed.stdin.write(json.dumps(said))
            killed.stdin.close()
            until(lambda: len(bench.proxy.matching(*RESET)) == 2, "the second half")
        finally:
            killed.kill()
            assert killed.wait(LIMIT) == -signal.SIGKILL
    assert bench.head.parents == (head.id, made)
    assert_published(bench, a, first.retry(), "first")


@pytest.mark.usefixtures("impatient", "interrupted")
def test_k3_an_interrupted_replacement_is_completed_by_installing_again(
    bench: Bench, a: str
) -> None:
    intended = bench.head.parents[1]
    assert install_fence(bench.truth, bench.repository, BRANCH).head == intended
    assert [commit.id for commit in bench.history(a)] == [intended]


@pytest.mark.usefixtures("impatient", "interrupted")
def test_k6_head_refuses_an_unfinished_replacement_and_leaves_it(bench: Bench) -> None:
    before = bench.head.id
    run = bench.run(tasks.save, name="saved")
    assert "unfinished replacement" in run.reason
    assert bench.head.id == before


def test_k3_completing_twice_changes_nothing(bench: Bench, a: str) -> None:
    first = bench.lab.run(step, faults=[FailAt("after publish")])
    intend(bench, bench.head.id, a)
    for _ in range(3):
        assert bench.store.finished_head(bench.repository, BRANCH).id == a
    assert first.retry().completed


def test_k3_an_interrupted_relocation_is_completed_and_the_next_attempt_merges(
    bench: Bench, a: str
) -> None:
    first = bench.run(step)
    intend(bench, bench.head.id, a)
    assert_published(bench, a, first.retry())


def test_p9_a_protected_branch_is_refused_before_anything_is_half_done(
    bench: Bench, a: str
) -> None:
    first = bench.lab.run(step, faults=[FailAt("after publish")])
    before = bench.head.id
    rules = [{"pattern": BRANCH, "blocked_actions": ["commit"]}]
    ask(bench, "PUT", "settings", "branch_protection", body=rules)
    wait_until_protected(bench)
    run = first.retry()
    assert PermissionRefusedError.__name__ in run.reason
    assert "hard-reset" in run.reason
    assert bench.head.id == before


def wait_until_protected(bench: Bench) -> None:
    """Wait until the server has read its new settings."""

    def is_protected() -> bool:
        try:
            ask(bench, "PUT", "branches", BRANCH, "hard_reset", query={"ref": BRANCH})
        except PermissionRefusedError:
            return True
        return False

    until(is_protected, "a protected branch", every=0.1)


# --- proof --------------------------------------------------------------------------------------


def refused(bench: Bench, run: Run) -> str:
    """Read why it was refused; it must be before any work."""
    assert run.status is Status.FAILED
    assert "before body" not in run.events
    assert f"run 'perago repo init --fence hard {bench.repository} --branch main'" in run.reason
    assert_tidy(bench)
    return run.reason


def test_k3_without_the_action_an_attempt_is_refused_before_any_work(bench: Bench) -> None:
    head = bench.given(GIVEN).id
    assert f"there is no {KEY} in commit {head}" in refused(bench, bench.run(step))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (render([BRANCH]).replace("~=", "=="), f"{KEY} was changed"),
        (render(["other"]), f"{KEY} protects other and not {BRANCH}"),
    ],
    ids=["changed", "on another branch"],
)
def test_k3_an_action_that_is_not_ours_for_this_branch_is_refused(
    bench: Bench, text: str, why: str
) -> None:
    bench.given(GIVEN | {KEY: text})
    assert why in refused(bench, bench.run(step))


def test_k3_a_commit_from_before_the_action_is_refused(bench: Bench) -> None:
    old = bench.given(GIVEN).id
    install_fence(bench.truth, bench.repository, BRANCH)
    where = WorkspaceInput(bench.repository, BRANCH, "commit", old)
    with pytest.raises(RuntimeConfigError, match="start from the new head"):
        bench.store.prove(where, "hard")


def test_k3_the_fence_is_tried_once_per_repository_and_process(bench: Bench, a: str) -> None:
    with bench.proxy.during(Rule(Pass(), times=0)):
        first = bench.lab.run(step)
        first.retry()
        tried = bench.proxy.matching("POST", "/merge/perago-probe-")
    assert [seen.status for seen in tried] == [412, 200]


def test_k3_a_server_that_skips_hooks_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = servers._lakefs_configuration  # noqa: SLF001 - a switch that only this test wants

    def without_hooks(seat: servers.ServerHome) -> dict[str, object]:
        return usual(seat) | {"actions": {"enabled": False}}

    monkeypatch.setattr(servers, "_lakefs_configuration", without_hooks)
    with start("hookless", tmp_path / "server", ["lakefs"]) as instance:
        assert_found_out(instance.lakefs, tmp_path)


def assert_found_out(endpoint: LakeFSEndpoint, place: Path) -> None:
    store, repository = ArrangedLakeFS(endpoint, place / "store"), new_name()
    store.create_repository(repository)
    with pytest.raises(RuntimeConfigError, match=r"actions\.enabled"):
        install_fence(store, repository, BRANCH)
    assert [branch.name for branch in store.branches(repository, hidden=True)] == [BRANCH]
    store.close()


# --- what nobody may do --------------------------------------------------------------------------


def test_s3_a_task_cannot_write_below_the_servers_actions(bench: Bench, a: str) -> None:
    staging = Staging(bench.repository, "perago-staging-x")
    bench.store.open_staging(staging, a)
    file = bench.place / "evil"
    file.write_bytes(b"evil")
    put = Put(KEY, entry_of(bench.store, b"evil"), file)
    for puts, deletes in (([put], []), ([], [KEY])):
        with pytest.raises(UnpublishableFileError, match="no task may write"):
            bench.store.write(staging, puts, deletes, lambda _: None)
    assert bench.files("perago-staging-x") == bench.files(a)


@pytest.mark.parametrize("change", ["deleted", "changed"])
def test_k3_a_source_whose_action_was_tampered_with_is_not_merged(
    bench: Bench, a: str, change: str
) -> None:
    """Whoever writes to a staging branch behind our back, as Spark can, is stopped here."""
    ask(bench, "POST", "branches", body={"name": "sly", "source": a}, plain=True)
    if change == "deleted":
        bench.truth.remove(bench.repository, "sly", KEY)
    else:
        bench.truth.put(bench.repository, "sly", KEY, THEIRS.encode())
    made = bench.truth.commit_branch(bench.repository, "sly", "sly").id
    for decision in (Merge(a, made), Replace(a, made)):
        with pytest.raises(RuntimeConfigError, match="does not hold"):
            bench.store.apply(
                Publication(bench.repository, BRANCH, decision, "hard", "m", {}, 10.0)
            )
    assert bench.head.id == a


@pytest.mark.parametrize(
    "said",
    [
        pytest.param({}, id="no expected head"),
        pytest.param({"perago.expected_head": "0" * 64}, id="another head"),
    ],
)
def test_a_merge_by_hand_needs_the_expected_head(
    bench: Bench, a: str, said: dict[str, str]
) -> None:
    ask(bench, "POST", "branches", body={"name": "person", "source": a}, plain=True)
    bench.truth.put(bench.repository, "person", "by-hand", b"x")
    bench.truth.commit_branch(bench.repository, "person", "by hand")
    merge = ("POST", "refs", "person", "merge", BRANCH)
    with pytest.raises(LostRaceError, match="412"):
        ask(bench, *merge, body={"metadata": said, "squash_merge": True})
    right = {"perago.expected_head": a}
    with pytest.raises(LostRaceError, match="has to be squashed"):
        ask(bench, *merge, body={"metadata": right})
    assert bench.head.id == a
    ask(bench, *merge, body={"metadata": right, "squash_merge": True})
    assert bench.head.parents == (a,)


# --- installing ---------------------------------------------------------------------------------


def test_installing_is_idempotent_and_touches_one_file(bench: Bench) -> None:
    given = {"ws/x": "x", "_lakefs_actions/theirs.yaml": THEIRS}
    before = bench.given(given).id
    first = install_fence(bench.truth, bench.repository, BRANCH)
    again = install_fence(bench.truth, bench.repository, BRANCH)
    assert (first.deed, again.deed) == (InstallAction.INSTALLED, InstallAction.NOTHING)
    assert first.head == again.head == bench.head.id
    assert bench.head.parents == (before,)
    assert bench.truth.diff(bench.repository, before, first.head, "").added == (KEY,)
    assert bench.content("_lakefs_actions/theirs.yaml").decode() == THEIRS
    assert_tidy(bench)


def test_installing_on_a_second_branch_extends_and_a_changed_action_is_restored(
    bench: Bench, a: str
) -> None:
    ask(bench, "POST", "branches", body={"name": "dev", "source": a}, plain=True)
    more = install_fence(bench.truth, bench.repository, "dev")
    assert (more.deed, more.branches) == (InstallAction.EXTENDED, ("dev", "main"))
    assert bench.head.id == a
    bench.truth.put(bench.repository, BRANCH, KEY, THEIRS.encode())
    bench.truth.commit_branch(bench.repository, BRANCH, "changed")
    mended = install_fence(bench.truth, bench.repository, BRANCH)
    assert (mended.deed, mended.branches) == (InstallAction.RESTORED, ("main",))
    assert bench.content(KEY).decode() == render(["main"])
