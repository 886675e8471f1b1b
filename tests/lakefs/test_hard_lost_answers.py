"""Lost, late and refused answers under fence ``hard``, on a real server (K3, P6, P8, P11, V1-V5).

The table of ``faults.md``: a merge is sent again with the same expected head, the second half of
a replacement is sent again as it is, and what comes too late is refused by the server.
"""

from __future__ import annotations

import pytest

from perago.protocol.values import Status
from perago.testing import Run
from tests.faults.proxy import Hold, LoseAnswer, LoseAnswerThen, ResetBefore, Rule, Say
from tests.lakefs.bench import BRANCH, Bench
from tests.lakefs.hard import MOODS, ask, assert_published, assert_tidy, fenced, files, step
from tests.lakefs.tasks import after
from tests.lakefs.test_lost_answers import APPLIED, FAULTS, GET_BRANCH, MERGE, foreign

pytestmark = pytest.mark.usefixtures("impatient")

SECOND_HALF = "/hard_reset"
PROBES_ITSELF = 1
"""A replacement first resets the branch to itself: is it permitted?"""
UNKNOWN = [name for name in FAULTS if name != "429"]
TOO_SLOW = {"hang"}


@pytest.fixture
def a(bench: Bench) -> str:
    return fenced(bench)


@pytest.fixture
def abandoned(bench: Bench, a: str) -> Run:
    """Give a publication that the broker never accepted."""
    run = bench.run(step, text="old")
    assert run.completed, run.reason
    return run


def second_half(fault: object, times: int | None = 1) -> Rule:
    return Rule(fault, "PUT", SECOND_HALF, PROBES_ITSELF, times)  # type: ignore[arg-type]


def assert_replaced_or_retried(bench: Bench, a: str, run: Run, *, completed: bool) -> None:
    assert run.completed == completed, run.reason
    if not completed:
        assert run.status is Status.FAILED
        assert_tidy(bench)
        run = bench.retry(run)
    assert_published(bench, a, run, "old")


# --- the merge ------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", UNKNOWN)
def test_p6_a_merge_without_an_answer_is_found_or_sent_again(
    bench: Bench, a: str, fault: str
) -> None:
    run = bench.run(step, MERGE.rule(FAULTS[fault]()))
    if fault in TOO_SLOW:  # The whole budget went by.
        assert "publish: OutcomeUnknownError" in run.reason
        run = bench.retry(run)
    assert_published(bench, a, run)


@pytest.mark.parametrize("fault", UNKNOWN)
def test_p6_a_merge_that_is_never_answered_lands_once_or_fails(
    bench: Bench, a: str, fault: str
) -> None:
    with bench.proxy.during(MERGE.rule(FAULTS[fault](), times=None)):
        run = bench.lab.run(step, {"text": "new"})
        sent = bench.proxy.matching(MERGE.method, MERGE.path)
    assert run.completed == (fault in APPLIED), run.reason
    if fault in APPLIED:
        assert len(sent) == 1  # Reading was enough.
    else:
        assert bench.head.id == a
        run = bench.retry(run)
    assert_published(bench, a, run)


@pytest.mark.parametrize("status", [409, 412, 423, 429])
def test_p8_a_refused_merge_fails_at_once(bench: Bench, a: str, status: int) -> None:
    with bench.proxy.during(MERGE.rule(Say(status), times=None)):
        run = bench.lab.run(step)
        assert len(bench.proxy.matching(MERGE.method, MERGE.path)) == 1
    assert "publish: LostRaceError" in run.reason
    assert bench.head.id == a
    assert_tidy(bench)


def test_p11_a_merge_applied_after_the_next_attempt_published_is_refused(
    bench: Bench, a: str
) -> None:
    """The hazard that ``head`` documents: with ``hard`` the completed one stays (V1, V3)."""
    held = Hold()
    late = bench.run(step, MERGE.rule(held))
    assert late.status is Status.FAILED
    completed = bench.retry(late)
    assert_published(bench, a, completed)
    held.release()
    assert_published(bench, a, completed)


def test_p11_a_late_merge_that_still_finds_its_head_is_replaced_by_the_next_attempt(
    bench: Bench, a: str
) -> None:
    held = Hold()
    late = bench.run(step, MERGE.rule(held))
    held.release()
    (landed,) = bench.history(a)
    assert landed.metadata["perago.execution_id"] == late.execution_id
    assert_published(bench, a, bench.retry(late))


def test_p6_a_merge_that_landed_and_was_built_upon_is_no_success_and_nothing_is_lost(
    bench: Bench, a: str
) -> None:
    run = bench.run(step, MERGE.rule(LoseAnswerThen(lambda: foreign(bench))))
    assert "LostRaceError" in run.reason
    newest, mine = bench.history(a)
    assert (newest.message, mine.parents) == ("foreign", (a,))


def test_p11_a_target_that_cannot_be_read_while_settling_fails_and_the_retry_replaces(
    bench: Bench, a: str
) -> None:
    blind = GET_BRANCH.rule(Say(503), times=None, skip=2)
    run = bench.run(step, MERGE.rule(LoseAnswer()), blind)
    assert "publish: OutcomeUnknownError" in run.reason
    assert_published(bench, a, bench.retry(run))


# --- the first half of a replacement --------------------------------------------------------------


@pytest.mark.parametrize("fault", UNKNOWN)
@pytest.mark.parametrize("times", [1, None], ids=["once", "always"])
def test_p6_an_intent_without_an_answer_is_found_or_sent_again(
    bench: Bench, a: str, abandoned: Run, fault: str, times: int | None
) -> None:
    run = bench.retry(abandoned, MERGE.rule(FAULTS[fault](), times=times))
    found = fault in APPLIED or (times == 1 and fault not in TOO_SLOW)
    assert_replaced_or_retried(bench, a, run, completed=found)


def test_p11_an_intent_applied_after_the_next_attempt_published_is_refused(
    bench: Bench, a: str, abandoned: Run
) -> None:
    held = Hold()
    late = bench.retry(abandoned, MERGE.rule(held))
    assert late.status is Status.FAILED
    completed = bench.retry(late)
    assert_published(bench, a, completed, "old")
    held.release()
    assert_published(bench, a, completed, "old")


def test_p11_an_intent_that_lands_late_is_completed_by_the_next_attempt(
    bench: Bench, a: str, abandoned: Run
) -> None:
    held = Hold()
    late = bench.retry(abandoned, MERGE.rule(held))
    held.release()
    assert len(bench.head.parents) == 2
    assert_published(bench, a, bench.retry(late), "old")


def test_k3_an_intent_that_another_completes_is_found_landed(
    bench: Bench, a: str, abandoned: Run
) -> None:
    def complete() -> None:
        bench.truth.finished_head(bench.repository, BRANCH)

    run = bench.retry(abandoned, MERGE.rule(LoseAnswerThen(complete)))
    assert run.completed, run.reason
    (published,) = bench.history(a)
    assert published.id == run.ref
    assert run.outcome
    assert run.outcome.fence == "head"  # Nobody could show that the action had run.


# --- the second half --------------------------------------------------------------------------


@pytest.mark.parametrize("fault", UNKNOWN)
def test_p6_a_second_half_without_an_answer_is_found_or_sent_again(
    bench: Bench, a: str, abandoned: Run, fault: str
) -> None:
    run = bench.retry(abandoned, second_half(FAULTS[fault]()))
    assert_replaced_or_retried(bench, a, run, completed=fault not in TOO_SLOW)


@pytest.mark.parametrize("fault", UNKNOWN)
def test_v5_a_second_half_that_never_succeeds_is_completed_by_the_next_attempt(
    bench: Bench, a: str, abandoned: Run, fault: str
) -> None:
    run = bench.retry(abandoned, second_half(FAULTS[fault](), times=None))
    assert_replaced_or_retried(bench, a, run, completed=fault in APPLIED)


@pytest.mark.parametrize("status", [400, 403, 409, 412, 423, 429])
def test_v5_a_refused_second_half_is_sent_again_or_completed_by_the_next_attempt(
    bench: Bench, a: str, abandoned: Run, status: int
) -> None:
    run = bench.retry(abandoned, second_half(Say(status)))
    assert_replaced_or_retried(bench, a, run, completed=status not in {400, 403})


def test_p6_a_second_half_that_landed_and_was_built_upon_loses_nothing(
    bench: Bench, a: str, abandoned: Run
) -> None:
    run = bench.retry(abandoned, second_half(LoseAnswerThen(lambda: foreign(bench)), times=None))
    assert "LostRaceError" in run.reason
    newest, mine = bench.history(a)
    assert newest.message == "foreign"
    assert mine.metadata["perago.execution_id"] == run.execution_id
    assert bench.content("foreign.txt") == b"foreign"


def test_p11_a_second_half_applied_after_the_next_attempt_published_changes_nothing(
    bench: Bench, a: str, abandoned: Run
) -> None:
    """The worst case of ``head``: a reset that wakes up and takes the completed commit away."""
    held = Hold()
    late = bench.retry(abandoned, second_half(held))
    assert late.status is Status.FAILED
    completed = bench.retry(late)
    assert_published(bench, a, completed, "old")
    held.release()
    assert_published(bench, a, completed, "old")


# --- relocation ---------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", UNKNOWN)
@pytest.mark.parametrize("half", ["first", "second"])
def test_n2_a_relocation_without_an_answer_is_settled_the_same_way(
    bench: Bench, a: str, abandoned: Run, fault: str, half: str
) -> None:
    spoiled = FAULTS[fault]()
    rule = MERGE.rule(spoiled) if half == "first" else second_half(spoiled)
    MOODS["idle"] = True
    try:
        run = bench.retry(abandoned, rule)
        if fault in TOO_SLOW:
            assert run.status is Status.FAILED
            run = bench.retry(run)
    finally:
        MOODS["idle"] = False
    assert run.completed, run.reason
    assert run.ref == bench.head.id == a
    assert_tidy(bench)


# --- what the others meet ---------------------------------------------------------------------


def test_k3_a_loser_completes_the_intent_it_lost_against(
    bench: Bench, a: str, abandoned: Run
) -> None:
    """Another's intent is the head when ours is refused: it is completed first (``faults.md``)."""
    head = bench.head.id
    ask(bench, "POST", "branches", body={"name": "other", "source": a}, plain=True)
    bench.truth.put(bench.repository, "other", "ws/out.txt", b"other")
    other = bench.truth.commit_branch(bench.repository, "other", "other").id

    class Overtake:
        def at(self, point: str, scene: object) -> None:
            if point == "decision":
                said = {"perago.intent": "replace", "perago.expected_head": head}
                body = {"metadata": said, "strategy": "source-wins", "allow_empty": True}
                ask(bench, "POST", "refs", other, "merge", BRANCH, body=body)

        def around(self, call: str, action: object) -> object:
            return action()  # type: ignore[operator]

    run = abandoned.retry(faults=[Overtake()])
    assert "LostRaceError" in run.reason
    assert bench.head.id == other
    assert [commit.id for commit in bench.history(a)] == [other]


def test_v4_readers_by_commit_never_see_the_intent(bench: Bench, a: str, abandoned: Run) -> None:
    """Between the halves the branch shows both at once; what is published never does."""
    broken = bench.retry(abandoned, second_half(ResetBefore(), times=None))
    half_done = bench.head
    assert len(half_done.parents) == 2
    done = bench.retry(broken)
    assert done.completed
    assert done.ref != half_done.id
    assert files(bench) == after("old")
    assert half_done.id not in [commit.id for commit in bench.history(a)]
