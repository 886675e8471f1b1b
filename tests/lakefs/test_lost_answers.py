"""Every call of an attempt, every fault of the network, on a real server (P6, P8, P11, S4).

The table of ``faults.md`` says how an unknown outcome is settled. Each case here is one whole
attempt through a proxy that spoils one request of it; what is asserted is read from the server
itself: the history, the tree and the branches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from perago.protocol.values import Status
from perago.testing import Run
from tests.faults.impatience import SkippingClock
from tests.faults.proxy import (
    Down,
    Drip,
    Exchange,
    Fault,
    Hang,
    HangAfter,
    Hold,
    LoseAnswer,
    LoseAnswerThen,
    Pass,
    ResetBefore,
    Rule,
    Say,
    Truncate,
)
from tests.lakefs import tasks
from tests.lakefs.bench import Bench
from tests.lakefs.tasks import GIVEN, after

pytestmark = pytest.mark.usefixtures("impatient")


@dataclass(frozen=True)
class Call:
    """One kind of request of an attempt."""

    name: str
    method: str
    path: str
    before: int = 0
    """How many of them come before the attempt itself: the lab reads the head as its A."""

    def rule(self, fault: Fault, times: int | None = 1, skip: int = 0) -> Rule:
        return Rule(fault, self.method, self.path, self.before + skip, times)

    def __str__(self) -> str:
        return self.name.replace(" ", "-")


LIST = Call("list", "GET", "/objects/ls")
GET_OBJECT = Call("get object", "GET", r"/objects\?path=")
GET_BRANCH = Call("get branch", "GET", "/branches/main$", before=1)
GET_COMMIT = Call("get commit", "GET", "/commits/[0-9a-f]{64}")
DIRTY = Call("get changes", "GET", "/branches/main/diff")
CREATE = Call("create branch", "POST", "/branches$")
UPLOAD = Call("upload", "POST", r"/objects\?path=")
DELETE = Call("delete", "POST", "/objects/delete$")
COMMIT = Call("commit", "POST", "/branches/perago-staging[^/]*/commits$")
MERGE = Call("merge", "POST", "/merge/main$")
RESET = Call("hard reset", "PUT", "/hard_reset")
DROP = Call("delete branch", "DELETE", "/branches/perago-staging")

FAULTS: dict[str, Callable[[], Fault]] = {
    "reset": ResetBefore,
    "lost": LoseAnswer,
    "hang": Hang,
    "applied-hang": HangAfter,
    "500": lambda: Say(500),
    "applied-500": lambda: Say(500, applied=True),
    "502": lambda: Say(502),
    "503": lambda: Say(503),
    "applied-503": lambda: Say(503, applied=True),
    "applied-504": lambda: Say(504, applied=True),
    "429": lambda: Say(429),
}
APPLIED = {"lost", "applied-hang", "applied-500", "applied-503", "applied-504"}
AGAIN = [LIST, GET_OBJECT, GET_BRANCH, GET_COMMIT, UPLOAD, DELETE, DROP]


@pytest.fixture
def a(bench: Bench) -> str:
    return bench.given(GIVEN).id


def spoil(bench: Bench, call: Call, fault: str) -> Run:
    return bench.run(tasks.step, call.rule(FAULTS[fault]()))


def assert_published(bench: Bench, a: str, run: Run, text: str = "new") -> None:
    """V1, V2, V7: one commit on A, it is the output, its tree is the attempt's, nothing is left."""
    assert run.completed, run.reason
    (published,) = bench.history(a)
    assert published.id == run.ref
    assert published.parents == (a,)
    assert bench.files() == after(text)
    assert bench.staging_branches() == []
    assert bench.attempt_dirs() == []


def assert_untouched(bench: Bench, head: str, run: Run) -> None:
    """V5: failed, and the target is as it was."""
    assert run.status is Status.FAILED
    assert bench.head.id == head
    assert bench.staging_branches() == []
    assert bench.attempt_dirs() == []


# --- what may be sent again -----------------------------------------------------------------------


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("call", AGAIN, ids=str)
def test_p6_reads_and_private_writes_are_sent_again(
    bench: Bench, a: str, call: Call, fault: str
) -> None:
    with bench.proxy.during(call.rule(FAULTS[fault]())):
        run = bench.lab.run(tasks.step)
        sent = bench.proxy.matching(call.method, call.path)
    assert len(sent) >= 2
    assert_published(bench, a, run)


@pytest.mark.parametrize("fault", ["reset", "lost", "503", "429"])
@pytest.mark.parametrize("call", [*AGAIN[:-1], COMMIT], ids=str)
def test_v5_what_never_answers_fails_and_the_retry_completes(
    bench: Bench, a: str, call: Call, fault: str
) -> None:
    run = bench.run(tasks.step, call.rule(FAULTS[fault](), times=None))
    # C is on its private branch, and found there by its execution id.
    assert run.completed == ((call, fault) == (COMMIT, "lost"))
    assert bench.staging_branches() == []
    assert_published(bench, a, run if run.completed else bench.retry(run))


@pytest.mark.parametrize("call", [*AGAIN, CREATE, COMMIT, MERGE], ids=str)
def test_v5_a_server_that_goes_down_fails_the_attempt_and_the_retry_completes(
    bench: Bench, a: str, call: Call
) -> None:
    run = bench.run(tasks.step, call.rule(Down()))
    bench.proxy.up()
    left = bench.staging_branches()
    if call is DROP:
        assert run.completed
    else:
        assert run.status is Status.FAILED
        assert bench.head.id == a or [c.parents for c in bench.history(a)] == [(a,)]
        run = bench.retry(run)
    for branch in left:  # V7: bounded, and named after the execution that left it.
        assert "-exec-" in branch
    assert len(left) <= 1
    assert run.completed, run.reason
    assert [commit.id for commit in bench.history(a)] == [run.ref]
    assert bench.files() == after()


# --- create branch --------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", FAULTS)
def test_s4_a_create_without_an_answer_fails_and_deletes_its_own_name(
    bench: Bench, a: str, fault: str
) -> None:
    with bench.proxy.during(CREATE.rule(FAULTS[fault]())):
        run = bench.lab.run(tasks.step)
        created, dropped = (bench.proxy.matching(c.method, c.path) for c in (CREATE, DROP))
    assert "stage: OutcomeUnknownError: create branch" in run.reason
    assert len(created) == 1
    assert len(dropped) == 1
    assert_untouched(bench, a, run)
    assert_published(bench, a, bench.retry(run))


def test_s1_a_name_that_is_taken_is_neither_used_nor_deleted(bench: Bench, a: str) -> None:
    with bench.proxy.during(CREATE.rule(Say(409, "branch already exists"))):
        run = bench.lab.run(tasks.step)
        assert bench.proxy.matching(DROP.method, DROP.path) == []
        assert bench.proxy.matching(COMMIT.method, COMMIT.path) == []
    assert "stage: AlreadyExistsError" in run.reason
    assert_untouched(bench, a, run)


def test_v7_a_create_applied_after_the_attempt_leaves_one_branch_that_names_it(
    bench: Bench, a: str
) -> None:
    held = Hold()
    run = bench.run(tasks.step, CREATE.rule(held))
    assert run.status is Status.FAILED
    assert bench.staging_branches() == []
    held.release()
    (left,) = bench.staging_branches()
    assert left.endswith(f"-exec-{run.execution_id}")
    assert bench.retry(run).completed


# --- commit ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", FAULTS)
def test_p6_a_commit_without_an_answer_is_found_or_made_once(
    bench: Bench, a: str, fault: str
) -> None:
    with bench.proxy.during(COMMIT.rule(FAULTS[fault]())):
        run = bench.lab.run(tasks.step)
        sent = bench.proxy.matching(COMMIT.method, COMMIT.path)
    assert len(sent) == (1 if fault in APPLIED else 2)
    assert sum(one.status == 201 or (one.applied and fault in APPLIED) for one in sent) == 1
    assert_published(bench, a, run)
    staged = bench.truth.commit(bench.repository, bench.head.metadata["perago.staging_commit"])
    assert staged.parents == (a,)
    assert staged.metadata["perago.execution_id"] == run.execution_id


def test_p6_a_commit_applied_long_after_it_was_sent_again_makes_no_second_one(
    bench: Bench, a: str
) -> None:
    held = Hold()
    watched: list[int] = []

    class ReleaseWhenCommitted:
        def at(self, point: str, scene: object) -> None:
            if point == "committed":
                held.release()
                (branch,) = bench.staging_branches()
                history = bench.truth.history(bench.repository, branch)
                watched.extend(commit.parents != () for commit in history)

        def around(self, call: str, action: Callable[[], object]) -> object:
            return action()

    before = sum(commit.parents != () for commit in bench.truth.history(bench.repository, "main"))
    with bench.proxy.during(COMMIT.rule(held)):
        run = bench.lab.run(tasks.step, faults=[ReleaseWhenCommitted()])
        late, again = bench.proxy.matching(COMMIT.method, COMMIT.path)
    assert again.status == 201
    assert late.status == 400  # Nothing left to commit.
    assert sum(watched) == before + 1
    assert_published(bench, a, run)


@pytest.mark.parametrize("busy", [Say(504), Say(400, "commit: no changes")], ids=["504", "400"])
def test_p6_a_commit_that_takes_longer_than_every_try_is_waited_for(
    bench: Bench, a: str, busy: Fault
) -> None:
    """As that of a million objects behind a proxy: it lands when nobody waits for its answer."""
    held = Hold()

    class Looked:
        times = 0

        def meet(self, exchange: Exchange) -> None:
            exchange.reply(exchange.forward())
            self.times += 1
            if self.times == 5:
                held.release()

    looked = Looked()
    rules = COMMIT.rule(held), COMMIT.rule(busy, times=None)
    with bench.proxy.during(
        *rules, Rule(looked, "GET", "/branches/perago-staging[^/]*$", times=None)
    ):
        run = bench.lab.run(tasks.patient)
    assert looked.times > 5
    assert_published(bench, a, run)
    staged = bench.truth.commit(bench.repository, bench.head.metadata["perago.staging_commit"])
    assert staged.parents == (a,)


@pytest.mark.parametrize("status", [400, 403, 409, 412])
def test_section_10_a_refused_commit_is_not_sent_again(bench: Bench, a: str, status: int) -> None:
    with bench.proxy.during(COMMIT.rule(Say(status), times=None)):
        run = bench.lab.run(tasks.step)
        assert len(bench.proxy.matching(COMMIT.method, COMMIT.path)) == 1
    assert_untouched(bench, a, run)


# --- merge ----------------------------------------------------------------------------------------

UNKNOWN = [name for name in FAULTS if name != "429"]


@pytest.mark.parametrize("fault", UNKNOWN)
def test_p6_p11_a_merge_without_an_answer_is_found_landed_or_fails_and_is_sent_once(
    bench: Bench, a: str, fault: str
) -> None:
    with bench.proxy.during(MERGE.rule(FAULTS[fault](), times=None)):
        run = bench.lab.run(tasks.step)
        (sent,) = bench.proxy.matching(MERGE.method, MERGE.path)
    assert "outcome unknown" in run.events
    assert sent.applied == (fault in APPLIED)
    if fault in APPLIED:
        assert_published(bench, a, run)
        assert bench.head.metadata["perago.execution_id"] == run.execution_id
    else:
        assert "publish: OutcomeUnknownError: merge into branch main" in run.reason
        assert_untouched(bench, a, run)
        assert_published(bench, a, bench.retry(run))


@pytest.mark.parametrize("status", [409, 412, 423, 429])
def test_p8_a_lost_race_fails_at_once_and_is_not_decided_again(
    bench: Bench, a: str, status: int
) -> None:
    with bench.proxy.during(MERGE.rule(Say(status), times=None)):
        run = bench.lab.run(tasks.step)
        assert len(bench.proxy.matching(MERGE.method, MERGE.path)) == 1
    assert "publish: LostRaceError" in run.reason
    assert "start a new workflow from the current head" in run.reason
    assert "outcome unknown" not in run.events
    assert_untouched(bench, a, run)


@pytest.mark.parametrize(
    "fault", [Drip(1, 0.1, endless=True), Truncate(20), Truncate(20, honest=True)], ids=str
)
def test_p6_a_merge_whose_answer_is_spoilt_is_found_landed_inside_its_time(
    bench: Bench, a: str, fault: Fault
) -> None:
    with bench.proxy.during(MERGE.rule(fault, times=None)):
        run = bench.lab.run(tasks.step)
        assert len(bench.proxy.matching(MERGE.method, MERGE.path)) == 1
    assert "outcome unknown" in run.events
    assert_published(bench, a, run)


def test_p11_a_merge_applied_after_the_margin_failed_and_the_next_attempt_replaces_it(
    bench: Bench, a: str
) -> None:
    held = Hold()
    run = bench.run(tasks.step, MERGE.rule(held))
    assert_untouched(bench, a, run)
    held.release()
    (late,) = bench.history(a)  # The abandoned publication.
    assert late.metadata["perago.execution_id"] == run.execution_id
    retried = bench.retry(run)
    assert_published(bench, a, retried)
    assert bench.head.id != late.id
    assert bench.is_commit(late.id)  # P10


def test_p11_a_merge_applied_inside_the_margin_is_found(
    bench: Bench, a: str, impatient: SkippingClock
) -> None:
    held = Hold()

    class Release:
        def at(self, point: str, scene: object) -> None:
            if point == "outcome unknown":  # While it waits to look a second time.
                impatient.meanwhile.append(held.release)

        def around(self, call: str, action: Callable[[], object]) -> object:
            return action()

    with bench.proxy.during(MERGE.rule(held)):
        run = bench.lab.run(tasks.step, faults=[Release()])
    assert impatient.meanwhile == []
    assert_published(bench, a, run)


def test_delayed_application_of_a_merge_that_conflicts_changes_nothing(
    bench: Bench, a: str
) -> None:
    """Released after another attempt published other content: the server refuses it."""
    held = Hold()
    first = bench.run(tasks.step, MERGE.rule(held), text="first")
    second = bench.run(tasks.step, text="second")
    assert_published(bench, a, second, "second")
    held.release()
    assert_published(bench, a, second, "second")
    assert first.status is Status.FAILED


def test_delayed_application_of_an_equal_merge_is_what_head_documents(bench: Bench, a: str) -> None:
    """Released after the retry published the same: nothing new to merge, or one more equal tree."""
    held = Hold()
    first = bench.run(tasks.step, MERGE.rule(held))
    second = bench.retry(first)
    held.release()
    history = bench.history(a)
    assert history[-1].id == second.ref  # Never lost: it is still reachable (V3).
    assert bench.files() == after()  # V4


def test_p6_a_merge_that_landed_and_was_built_upon_is_no_success_and_nothing_is_lost(
    bench: Bench, a: str
) -> None:
    with bench.proxy.during(MERGE.rule(LoseAnswerThen(lambda: foreign(bench)), times=None)):
        run = bench.lab.run(tasks.step)
        assert len(bench.proxy.matching(MERGE.method, MERGE.path)) == 1
    assert "LostRaceError" in run.reason
    newest, mine = bench.history(a)
    assert newest.message == "foreign"
    assert mine.metadata["perago.execution_id"] == run.execution_id
    assert bench.content("foreign.txt") == b"foreign"
    retried = bench.retry(run)  # P3: A is two steps back now.
    assert "PublishFenceError" in retried.reason
    assert bench.head.id == newest.id


def test_p11_a_target_that_cannot_be_read_while_settling_fails_and_the_retry_replaces(
    bench: Bench, a: str
) -> None:
    blind = GET_BRANCH.rule(Say(503), times=None, skip=2)  # H before and after the fence.
    run = bench.run(tasks.step, MERGE.rule(LoseAnswer()), blind)
    assert "publish: OutcomeUnknownError" in run.reason
    assert run.events.count("outcome unknown") == 1
    assert [commit.parents for commit in bench.history(a)] == [(a,)]
    assert_published(bench, a, bench.retry(run))


def test_p5_a_landed_merge_that_cannot_be_seen_is_no_success_and_the_retry_replaces(
    bench: Bench, a: str
) -> None:
    run = bench.run(tasks.step, GET_BRANCH.rule(Say(503), times=None, skip=2))
    assert "publish: StoreUnavailableError" in run.reason
    assert bench.staging_branches() == []
    assert_published(bench, a, bench.retry(run))


# --- hard reset -----------------------------------------------------------------------------------


@pytest.fixture
def abandoned(bench: Bench, a: str) -> Run:
    """Give a publication that the broker never accepted."""
    run = bench.run(tasks.step)
    assert run.completed
    return run


@pytest.mark.parametrize("fault", FAULTS)
def test_p4_whether_the_target_is_dirty_is_asked_again_before_a_replacement(
    bench: Bench, a: str, abandoned: Run, fault: str
) -> None:
    with bench.proxy.during(DIRTY.rule(FAULTS[fault]())):
        run = bench.retry(abandoned)
        assert len(bench.proxy.matching(DIRTY.method, DIRTY.path)) >= 2
    assert_published(bench, a, run)


@pytest.mark.parametrize("fault", ["reset", "lost", "503", "429"])
def test_p4_a_target_that_may_be_dirty_is_not_replaced(
    bench: Bench, abandoned: Run, fault: str
) -> None:
    head = bench.head.id
    run = bench.retry(abandoned, DIRTY.rule(FAULTS[fault](), times=None))
    assert_untouched(bench, head, run)


@pytest.mark.parametrize("fault", UNKNOWN)
@pytest.mark.parametrize("kind", ["P2-replace", "N2-relocate"])
def test_p6_a_hard_reset_without_an_answer_is_found_landed_or_fails_and_is_sent_once(
    bench: Bench, a: str, kind: str, fault: str
) -> None:
    first = bench.run(tasks.idle if kind == "N2-relocate" else tasks.step)
    if kind == "N2-relocate":
        bench.truth.put(bench.repository, "main", "ws/out.txt", b"abandoned")
        bench.truth.commit_branch(bench.repository, "main", "abandoned")
    before = bench.head.id
    with bench.proxy.during(RESET.rule(FAULTS[fault](), times=None)):
        run = first.retry()
        (sent,) = bench.proxy.matching(RESET.method, RESET.path)
        assert bench.proxy.matching(MERGE.method, MERGE.path) == []
    assert sent.applied == (fault in APPLIED)
    assert "outcome unknown" in run.events
    if fault not in APPLIED:
        assert "publish: OutcomeUnknownError: hard-reset branch main" in run.reason
        assert_untouched(bench, before, run)
        run = bench.retry(run)
    if kind == "P2-replace":
        assert_published(bench, a, run)
    else:
        assert run.completed
        assert run.ref == bench.head.id == a
    assert bench.is_commit(before)


@pytest.mark.parametrize("status", [409, 412, 423, 429])
def test_p8_a_hard_reset_that_lost_a_race_fails_at_once(
    bench: Bench, abandoned: Run, status: int
) -> None:
    before = bench.head.id
    with bench.proxy.during(RESET.rule(Say(status), times=None)):
        run = abandoned.retry()
        assert len(bench.proxy.matching(RESET.method, RESET.path)) == 1
    assert "publish: LostRaceError" in run.reason
    assert_untouched(bench, before, run)


def test_p6_a_hard_reset_that_landed_and_was_built_upon_loses_no_foreign_commit(
    bench: Bench, a: str, abandoned: Run
) -> None:
    """Sent a second time, as an HTTP library would, it would destroy the foreign commit."""
    with bench.proxy.during(RESET.rule(LoseAnswerThen(lambda: foreign(bench)), times=None)):
        run = abandoned.retry()
        assert len(bench.proxy.matching(RESET.method, RESET.path)) == 1
    assert "LostRaceError" in run.reason
    newest, mine = bench.history(a)
    assert newest.message == "foreign"
    assert mine.metadata["perago.execution_id"] == run.execution_id
    assert bench.content("foreign.txt") == b"foreign"


def test_p11_a_hard_reset_applied_after_the_margin_failed_and_the_next_attempt_settles(
    bench: Bench, a: str, abandoned: Run
) -> None:
    held = Hold()
    before = bench.head.id
    run = bench.retry(abandoned, RESET.rule(held))
    assert_untouched(bench, before, run)
    held.release()
    (late,) = bench.history(a)
    assert late.metadata["perago.execution_id"] == run.execution_id
    assert_published(bench, a, bench.retry(run))


def test_delayed_application_of_a_hard_reset_is_the_hazard_that_head_documents(
    bench: Bench, a: str, abandoned: Run
) -> None:
    """Released after the next attempt completed it takes its place: A -> C, but the older C (V3).

    Fence ``hard`` closes this; under ``head`` the completed commit stays readable by its id.
    """
    held = Hold()
    stale = bench.retry(abandoned, RESET.rule(held))
    completed = bench.retry(stale)
    assert_published(bench, a, completed)
    held.release()
    (visible,) = bench.history(a)
    assert visible.metadata["perago.execution_id"] == stale.execution_id
    assert completed.ref is not None
    assert bench.is_commit(completed.ref)
    assert bench.files() == after()  # V4: whole, if old.


def test_p4_a_target_that_becomes_dirty_before_the_reset_is_refused(
    bench: Bench, abandoned: Run
) -> None:
    before = bench.head.id
    bench.truth.put(bench.repository, "main", "dirt.txt", b"dirt")
    with bench.proxy.during(Rule(Pass(), times=0)):
        run = abandoned.retry()
        assert bench.proxy.matching(RESET.method, RESET.path) == []
    assert "uncommitted changes" in run.reason
    assert_untouched(bench, before, run)


# --- delete branch --------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [*FAULTS, "400", "403"])
def test_step_13_a_cleanup_that_never_succeeds_is_logged_and_changes_nothing(
    bench: Bench, a: str, fault: str
) -> None:
    spoiled = FAULTS[fault]() if fault in FAULTS else Say(int(fault))
    run = bench.run(tasks.step, DROP.rule(spoiled, times=None))
    assert run.completed
    left = bench.staging_branches()
    assert [name.rpartition("-")[2] for name in left] in ([], [run.execution_id])
    assert bool(left) == (fault not in APPLIED)
    assert ("warning" in run.events) or fault in APPLIED
    assert [commit.id for commit in bench.history(a)] == [run.ref]
    assert bench.attempt_dirs() == []


def foreign(bench: Bench) -> None:
    """Somebody else commits to the target."""
    bench.truth.put(bench.repository, "main", "foreign.txt", b"foreign")
    bench.truth.commit_branch(bench.repository, "main", "foreign")
