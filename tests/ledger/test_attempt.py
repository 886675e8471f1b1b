"""K5 in whole attempts on real stores: killed anywhere, then retried with the same ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perago.errors import LedgerUnavailableError
from perago.ledger.sql import SqlLedger
from perago.ledger.sqlite import SqliteDatabase
from perago.protocol.adoption import Completion, Posting
from perago.protocol.values import Attempt, AttemptSnapshot, Status
from perago.tasks.bodies import FunctionBody
from perago.testing import POINTS, FailAt, Lab, LoseAnswer, MoveHeadAt, StaleAt
from perago.testing.faults import Scene
from perago.testing.lab import Run
from tests.lakefs_lab import ArrangedLakeFS, new_name
from tests.ledger import deeds
from tests.ledger.deeds import GIVEN

Task = Callable[..., Any]
LANDED = POINTS[POINTS.index("published") :]
"""From here on the ledger knows of the publication."""
UNREPORTED = [point for point in LANDED if point != "after report"]
FENCES = [deeds.head, deeds.lineage, deeds.hard]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqlLedger]:
    """Give a ledger in a file."""
    made = SqlLedger(SqliteDatabase(tmp_path / "ledger.sqlite"))
    yield made
    made.close()


@pytest.fixture
def lab(tmp_path: Path, ledger: SqlLedger) -> Iterator[Lab]:
    """Give a lab that keeps a ledger."""
    made = Lab(tmp_path / "lab", ledger=ledger)
    made.commit(GIVEN)
    yield made
    made.close()


@pytest.fixture
def lakefs_lab(tmp_path: Path, ledger: SqlLedger, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """Give the same on a real lakeFS."""
    store = ArrangedLakeFS(request.getfixturevalue("lakefs_server"), tmp_path / "worker")
    made = Lab(tmp_path / "lab", store=store, repository=new_name(), ledger=ledger)
    made.commit(GIVEN)
    yield made
    made.close()


def postings(run: Run) -> Sequence[Posting]:
    assert isinstance(run.lab.ledger, SqlLedger)
    return run.lab.ledger.of_step(run.attempt.logical_task_key)


def posting(run: Run) -> Posting | None:
    return next((p for p in postings(run) if p.execution_id == run.execution_id), None)


def other_params(run: Run, **params: object) -> Run:
    """Run the next attempt with other params than the one before."""
    return replace(run, params=params).retry()


def assert_truthful(run: Run) -> None:
    """G2: what the ledger says of any execution of this step is what store and broker say."""
    lab = run.lab
    reported = {attempt.task_id: outcome for attempt, outcome in lab.broker.reports}
    for each in postings(run):
        if each.ref is not None and each.decision in {"merge", "replace"}:
            commit = lab.store.commit(lab.repository, each.ref)
            assert commit.metadata["perago.execution_id"] == each.execution_id
            token = each.output["result"]["token"]  # type: ignore[index]
            assert token in lab.files(each.ref)["ws/out.txt"].decode()
        if each.completion is Completion.ACCEPTED:
            assert reported[each.attempt.task_id].completed


def assert_one_truth(run: Run) -> None:
    """V1, V2: one publication on the input; its content and its result are of one run."""
    assert run.completed, run.reason
    assert run.ref == run.lab.head.id
    assert [commit.id for commit in run.history] == [run.ref, run.workspace and run.workspace.ref]
    assert run.result["token"] in run.files["ws/out.txt"].decode()


# --- a retry after a lost completion ------------------------------------------------------------


@pytest.mark.parametrize("task", FENCES)
@pytest.mark.parametrize("point", UNREPORTED)
def test_k5_a_retry_adopts_what_was_published_and_never_reported(
    lab: Lab, task: Task, point: str
) -> None:
    killed = lab.run(task, faults=[FailAt(point)])
    abandoned = lab.head
    retried = killed.retry()
    assert lab.head == abandoned
    assert_one_truth(retried)
    assert "adopted" in retried.events
    assert "before body" not in retried.events
    assert "branch created" not in retried.events
    assert abandoned.metadata["perago.execution_id"] == killed.execution_id
    assert_truthful(retried)
    taken = posting(retried)
    assert taken
    assert (taken.decision, taken.state, taken.ref) == ("adopt", "completed", abandoned.id)


@pytest.mark.parametrize("point", ["published", "before report"])
def test_k5_on_lakefs_a_retry_adopts_too(lakefs_lab: Lab, point: str) -> None:
    killed = lakefs_lab.run(deeds.head, faults=[FailAt(point)])
    abandoned = lakefs_lab.head
    retried = killed.retry()
    assert lakefs_lab.head == abandoned
    assert_one_truth(retried)
    assert_truthful(retried)


@pytest.mark.parametrize("task", FENCES)
@pytest.mark.parametrize("point", POINTS)
def test_v5_g2_killed_anywhere_the_retry_completes_and_the_ledger_is_truthful(
    lab: Lab, task: Task, point: str
) -> None:
    killed = lab.run(task, faults=[FailAt(point)])
    assert_truthful(killed)
    if killed.workspace and lab.head.id != killed.workspace.ref:  # Intended before it is visible.
        assert lab.head.metadata["perago.execution_id"] in [
            p.execution_id for p in postings(killed)
        ]
    known = posting(killed)
    assert (known is not None and known.ref is not None) is (point in LANDED)
    retried = killed.retry()
    assert retried.completed, retried.reason
    assert retried.result["token"] in retried.files["ws/out.txt"].decode()
    assert ("adopted" in retried.events) is (point in UNREPORTED)
    assert_truthful(retried)


ADOPTING = [
    *("claimed", "before input", "after input"),
    *("before first attempt fence", "decision", "after first attempt fence"),
    *("before report", "after report"),
]


def test_k5_the_points_of_an_attempt_that_adopts(lab: Lab) -> None:
    killed = lab.run(deeds.head, faults=[FailAt("published")])
    assert [event for event in killed.retry().events if event in POINTS] == ADOPTING


@pytest.mark.parametrize("point", ADOPTING)
def test_k5_killed_while_it_adopts_the_next_retry_adopts_again(lab: Lab, point: str) -> None:
    killed = lab.run(deeds.head, faults=[FailAt("published")])
    abandoned = lab.head
    again = killed.retry(faults=[FailAt(point)])
    assert lab.head == abandoned
    last = again.retry()
    if posting_accepted(again):
        assert "adopted" not in last.events  # It was completed: whoever runs it once more means it.
        return
    assert lab.head == abandoned
    assert_one_truth(last)
    assert_truthful(last)


def posting_accepted(run: Run) -> bool:
    found = posting(run)
    return found is not None and found.completion is Completion.ACCEPTED


def test_k5_r2_a_completion_that_was_dropped_is_recorded_and_adopted(lab: Lab) -> None:
    lost = lab.run(deeds.head, faults=[StaleAt("before report")])
    found = posting(lost)
    assert found
    assert found.state == "completion lost"
    retried = lost.retry()
    assert_one_truth(retried)
    assert retried.ref == lost.ref
    assert retried.result == lost.result


def test_k5_a_lost_answer_that_was_settled_is_recorded_as_landed(lab: Lab) -> None:
    killed = lab.run(deeds.head, faults=[LoseAnswer("apply"), FailAt("published")])
    abandoned = lab.head
    retried = killed.retry()
    assert_one_truth(retried)
    assert retried.ref == abandoned.id


@pytest.mark.parametrize("task", [deeds.head, deeds.hard])
def test_k5_a_twin_execution_adopts_what_its_twin_published(lab: Lab, task: Task) -> None:
    killed = lab.run(task, faults=[FailAt("published")])
    abandoned = lab.head
    twin = lab.again(killed)
    assert_one_truth(twin)
    assert lab.head == abandoned


def test_k5_a_replacement_is_adopted_like_a_merge(lab: Lab) -> None:
    first = lab.run(deeds.head, faults=[FailAt("applied")])
    second = first.retry(faults=[FailAt("published")])
    replacement = lab.head
    third = second.retry()
    assert [p.decision for p in postings(third)] == ["intend", "replace", "adopt"]
    assert lab.head == replacement
    assert_one_truth(third)


# --- what is not adopted ------------------------------------------------------------------------


def test_k5_other_params_replace_as_before(lab: Lab) -> None:
    killed = lab.run(deeds.head, {"text": "one"}, faults=[FailAt("published")])
    abandoned = lab.head
    retried = other_params(killed, text="two")
    assert_one_truth(retried)
    assert retried.ref != abandoned.id
    assert "not adopted" in retried.events
    assert retried.files["ws/out.txt"].startswith(b"two ")


def test_k5_other_code_replaces_as_before(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    killed = lab.run(deeds.head, faults=[FailAt("published")])
    monkeypatch.setattr(FunctionBody, "code", "edited")
    retried = killed.retry()
    assert "adopted" not in retried.events
    assert_one_truth(retried)


def test_k5_another_step_adopts_nothing(lab: Lab) -> None:
    killed = lab.run(deeds.head, faults=[FailAt("published")])
    stranger = replace(killed, attempt=replace(killed.attempt, reference_task_name="other"))
    assert "adopted" not in stranger.retry().events


def test_k5_a_completed_step_that_runs_again_runs_its_body(lab: Lab) -> None:
    done = lab.run(deeds.head)
    found = posting(done)
    assert found
    assert found.state == "completed"
    again = done.retry()
    assert "after body" in again.events
    assert_one_truth(again)
    assert again.result != done.result


def test_k5_f1_a_stale_attempt_adopts_nothing(lab: Lab) -> None:
    killed = lab.run(deeds.head, faults=[FailAt("published")])
    stale = killed.retry(faults=[StaleAt("after input")])
    assert stale.status is Status.FAILED
    assert "first attempt fence: StaleAttemptError" in stale.reason
    assert posting(stale) is None


def test_k5_f2_a_silent_broker_means_no(lab: Lab) -> None:
    killed = lab.run(deeds.head, faults=[FailAt("published")])
    lab.broker.fall_silent(3)
    retried = killed.retry()
    assert "BrokerUnavailableError" in retried.reason
    assert posting(retried) is None


class MoveOnce(MoveHeadAt):
    """Moves the head when a point is first reached: with a ledger one fence is passed twice."""

    def at(self, point: str, scene: Scene) -> None:
        if point == self.point:
            super().at(point, scene)
            self.point = ""


@pytest.mark.parametrize("point", ["after input", "before first attempt fence"])
def test_k5_f3_a_head_that_moved_is_not_adopted(lab: Lab, point: str) -> None:
    killed = lab.run(deeds.head, faults=[FailAt("published")])
    retried = killed.retry(faults=[MoveOnce(point)])
    assert retried.status is Status.FAILED
    assert "PublishFenceError" in retried.reason
    assert "adopted" not in retried.events
    assert "foreign.txt" in retried.files


def test_k5_f3_a_head_that_moves_while_the_broker_is_asked_is_not_adopted(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = lab.run(deeds.head, faults=[FailAt("published")])
    ask = lab.broker.current

    def moving(attempt: Attempt) -> AttemptSnapshot:
        lab.commit({"foreign.txt": f"{lab.broker.asked}"})
        return ask(attempt)

    monkeypatch.setattr(lab.broker, "current", moving)
    retried = killed.retry()
    assert "first attempt fence: PublishFenceError: branch moved from" in retried.reason
    assert posting(retried) is None


def test_k5_a_branch_at_its_input_is_not_looked_up(lab: Lab) -> None:
    run = lab.run(deeds.head)
    fences = [name for name in run.events if name == "before first attempt fence"]
    assert len(fences) == 1
    assert "not adopted" not in run.events


def test_n1_a_run_without_change_is_recorded_and_a_read_only_one_is_not(lab: Lab) -> None:
    kept = lab.run(deeds.touch)
    found = posting(kept)
    assert found
    assert (found.decision, found.state, found.ref) == ("keep", "completed", kept.ref)
    assert postings(lab.run(deeds.look)) == []


def test_n2_a_publication_that_was_taken_back_is_recorded(lab: Lab) -> None:
    back = lab.run(deeds.touch, faults=[MoveHeadAt("before second attempt fence")])
    found = posting(back)
    assert found
    assert (found.decision, found.state, found.ref) == ("relocate", "completed", back.ref)
    assert found.head not in {"", back.ref}


def test_p3_a_refusal_is_recorded(lab: Lab) -> None:
    moves = [MoveHeadAt("after body", {"x": "1"}), MoveHeadAt("after diff", {"x": "2"})]
    refused = lab.run(deeds.head, faults=moves)
    found = posting(refused)
    assert found
    assert (found.decision, found.state, found.ref) == ("refuse", "refused", None)
    assert found.head == lab.head.id
    assert found.completion is Completion.FAILED


class Listener:
    """Writes down the points of an attempt, and between them what the ledger hears."""

    def __init__(self, inner: SqlLedger) -> None:
        self._inner = inner
        self.heard: list[str] = []

    def at(self, point: str, scene: Scene) -> None:
        self.heard.append(point)

    def around(self, call: str, action: Callable[[], object]) -> object:
        return action()

    def __getattr__(self, name: str) -> Any:
        if name in {"post", "settle", "of_step"}:
            self.heard.append("ledger")
        return getattr(self._inner, name)


@pytest.mark.parametrize("task", [*FENCES, deeds.touch])
def test_f3_nothing_of_the_ledger_stands_between_the_fence_and_the_write(
    lab: Lab, ledger: SqlLedger, task: Task
) -> None:
    """The time between the last look at H and the write is the window that remains under head."""
    listener = Listener(ledger)
    lab.ledger = listener
    assert lab.run(task, faults=[listener]).completed
    begin = listener.heard.index("before second attempt fence")
    moved = "applied" in listener.heard
    end = listener.heard.index("applied" if moved else "decision")
    assert listener.heard[begin - 1] == "ledger"
    assert "ledger" not in listener.heard[begin:end]
    assert "ledger" in listener.heard[end:]


# --- a ledger that does not answer --------------------------------------------------------------


class Failing:
    """A ledger that fails from its nth call on, or at it; the call may have been carried out."""

    def __init__(self, inner: SqlLedger, at: int, *, applied: bool) -> None:
        self._inner = inner
        self._left = at
        self._applied = applied

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any) -> Any:
            self._left -= 1
            if self._left == 0:
                if self._applied:
                    getattr(self._inner, name)(*args)
                raise LedgerUnavailableError("gone")
            return getattr(self._inner, name)(*args)

        return call


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("call", range(1, 7))
def test_k5_a_ledger_that_fails_at_any_call_fails_no_attempt(
    lab: Lab, ledger: SqlLedger, call: int, applied: bool
) -> None:
    """First attempt: post, post, settle; a retry: of_step twice, post, settle."""
    lab.ledger = Failing(ledger, call, applied=applied)
    first = lab.run(deeds.head, faults=[StaleAt("before report")])
    assert first.completed
    second = first.retry()
    lab.ledger = ledger
    assert_one_truth(second)
    assert_truthful(second)


def test_k5_a_ledger_that_cannot_be_opened_is_warned_of_once(tmp_path: Path, lab: Lab) -> None:
    lab.ledger = SqlLedger(SqliteDatabase(tmp_path))  # A directory is no database.
    killed = lab.run(deeds.head, faults=[FailAt("published")])
    assert killed.events.count("warning") == 1
    retried = killed.retry()
    assert_one_truth(retried)
    assert retried.events.count("warning") == 1
    assert "adopted" not in retried.events


def test_v8_params_are_not_in_the_ledger(lab: Lab, tmp_path: Path) -> None:
    lab.run(deeds.head, {"text": "canary-4711"})
    files = [path for path in tmp_path.glob("ledger.sqlite*") if path.is_file()]
    assert files
    assert all(b"canary-4711" not in path.read_bytes() for path in files)
    assert (tmp_path / "ledger.sqlite").stat().st_mode & 0o077 == 0
