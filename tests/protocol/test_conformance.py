"""What follows from the evidence of a case: one broken thing at a time (Q17)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from perago.protocol.conformance import at_rest, execution_of, judge, looked_at
from perago.protocol.evidence import (
    CONFORM,
    MEANINGS,
    Arrangement,
    AttemptRecord,
    Evidence,
    Expected,
    Invariant,
    JournalEntry,
)
from perago.protocol.values import Commit, WorkspaceInput

A, X, H = "a" * 64, "b" * 64, "c" * 64
WORKSPACE = WorkspaceInput("repo", "main", "commit", A)
BASE = {"ws/old.txt": "1", "ws2/near.txt": "2", "other.txt": "3"}
WANTED = {"ws/old.txt": "1", "ws/new.txt": "4"}
STAGING = "perago-staging-w-step0-seq-1-iteration-0-task-id-t0-retry-0-exec-e0"
C = "d" * 64
IDENTITY = {
    "perago.phase": "try",
    "perago.execution_id": "e0",
    "perago.workflow_instance_id": "w",
    "perago.logical_task_key": "w:step0:0",
    "perago.task": "name",
    "perago.task_id": "t0",
    "perago.retry_count": "0",
    "perago.input_ref": A,
    "perago.target_branch": "main",
    "perago.prefix": "/ws",
    "perago.staging_branch": STAGING,
}
CONFIRM = {
    **IDENTITY,
    "perago.phase": "confirm",
    "perago.staging_commit": C,
    "perago.expected_head": A,
    "perago.supersedes": "",
}
STAGED = Commit(C, (A,), metadata=IDENTITY)
PUBLICATION = Commit(X, (A,), metadata=CONFIRM)


def output(ref: str) -> dict[str, Any]:
    return {"workspace": WORKSPACE.at(ref).as_json(), "result": {}}


def completed(ref: str = X, **more: Any) -> AttemptRecord:
    given = {"task_id": "t0", "retry_count": 0, "status": "COMPLETED", "output": output(ref)}
    return AttemptRecord(
        **{
            **given,
            "workflow_instance_id": "w",
            "logical_task_key": "w:step0:0",
            "task": "name",
            "staging": STAGING.removesuffix("e0"),
            **more,
        }
    )


def failed(reason: str = "publish: refused", status: str = "FAILED") -> AttemptRecord:
    return AttemptRecord("t0", 0, status, reason=reason)


def arranged(expected: Expected = Expected.PUBLISHED, **more: Any) -> Arrangement:
    given: dict[str, Any] = {
        "case": "case",
        "rule": "P1",
        "workspace": WORKSPACE,
        "prefix": "ws/",
        "base": BASE,
        "wanted": WANTED,
        "before": A,
    }
    return Arrangement(expected=expected, **{**given, **more})


def published(**more: Any) -> Evidence:
    tree = {key: value for key, value in BASE.items() if not key.startswith("ws/")} | WANTED
    seen = Evidence(
        arranged=arranged(),
        ended=True,
        head=PUBLICATION,
        history=(PUBLICATION,),
        tree=tree,
        dirty=False,
        attempts=(completed(),),
        staged=STAGED,
        journal=(
            JournalEntry("post-create-branch", STAGING, A),
            JournalEntry("pre-commit", STAGING, C),
            JournalEntry("pre-merge", "main", X),
        ),
    )
    return replace(seen, **more)


def kept(**more: Any) -> Evidence:
    seen = published(
        arranged=arranged(Expected.KEPT, rule="N1"),
        head=Commit(A, ()),
        history=(),
        tree=BASE,
        attempts=(completed(A),),
        journal=(),
    )
    return replace(seen, **more)


def refused(**more: Any) -> Evidence:
    given: dict[str, Any] = {
        "arranged": arranged(Expected.REFUSED, rule="P3", before=H),
        "head": Commit(H, (A,)),
        "history": (Commit(H, (A,)),),
        "attempts": (failed(),),
        "journal": (),
    }
    return kept(**{**given, **more})


def test_what_holds_is_not_complained_about() -> None:
    for seen in (published(), kept(), refused()):
        assert judge(seen) == []


def test_every_promise_is_named() -> None:
    assert set(MEANINGS) == set(Invariant)


ABANDONED = Commit(H, (A,))
CASES: dict[str, tuple[Evidence, str, str]] = {
    "on top of an abandoned publication": (
        published(
            arranged=arranged(planted=frozenset({H}), rule="P2"),
            history=(replace(PUBLICATION, parents=(H,)), ABANDONED),
        ),
        "V1",
        "P2",
    ),
    "two publications": (published(history=(Commit("e" * 64, (X,)), PUBLICATION)), "V1", "P1"),
    "a merge with two parents": (
        published(history=(replace(PUBLICATION, parents=(A, H)),)),
        "V1",
        "P1",
    ),
    "the input is gone": (published(history=None), "V1", "P1"),
    "one that should not be there was published too": (
        published(journal=(JournalEntry("pre-merge", "main", H),)),
        "V1",
        "P1",
    ),
    "an empty commit": (kept(history=(PUBLICATION,), head=PUBLICATION), "V1", "N1"),
    "a refused attempt moved the target": (refused(head=PUBLICATION), "V1", "P3"),
    "completed with another ref": (published(attempts=(completed("e" * 64),)), "V2", "P5"),
    "a no-op completed with the head": (kept(attempts=(completed(X),)), "V2", "N4"),
    "completed with another tree": (published(tree=BASE), "V2", "S2"),
    "no result": (published(attempts=(completed(output={**output(X), "result": 1}),)), "V2", "I3"),
    "another workspace": (
        published(attempts=(completed(output={"workspace": {"ref": X}, "result": {}}),)),
        "V2",
        "I3",
    ),
    "completed and should be refused": (refused(attempts=(completed(H),)), "V2", "P3"),
    "an accepted ref is gone": (
        refused(arranged=arranged(Expected.REFUSED, rule="P2a", before=H, accepted=(X,))),
        "V3",
        "P2a",
    ),
    "a publication names no task": (published(head=replace(PUBLICATION, metadata={})), "V3", "S5"),
    "replaced without a condition": (
        published(arranged=arranged(planted=frozenset({H}), fence="hard")),
        "V3",
        "K3",
    ),
    "uncommitted changes": (published(dirty=True), "V4", "P4"),
    "a commit on the target": (
        published(journal=(JournalEntry("pre-commit", "main", X),)),
        "V4",
        "S1",
    ),
    "a mixed tree": (published(tree={**BASE, **WANTED, "ws/stray.txt": "9"}), "V4", "P1"),
    "no attempt completes": (published(attempts=(failed(),)), "V5", "P1"),
    "it never ends": (published(ended=False), "V5", "G2"),
    "a change outside of the prefix": (
        published(tree={**BASE, **WANTED, "ws2/near.txt": "9"}),
        "V6",
        "S2",
    ),
    "a branch of another name": (
        published(journal=(JournalEntry("post-create-branch", "mine", A),)),
        "V7",
        "S1",
    ),
    "a branch that is left": (published(left=(STAGING,)), "V7", "S4"),
    "a key in a log": (published(leaks=("the log holds a key",)), "V8", "I7"),
    "two visible acts": (
        published(arranged=arranged(planted=frozenset({H}), before=H, rule="P2")),
        "V1",
        "P2",
    ),
    "a branch for nothing": (
        kept(journal=(JournalEntry("post-create-branch", STAGING, A),)),
        "V1",
        "N1",
    ),
    "a commit for nothing": (kept(journal=(JournalEntry("pre-commit", STAGING, C),)), "V1", "N1"),
    "a refused input is staged": (
        refused(
            arranged=arranged(Expected.REFUSED, rule="I2", before=H, early=True),
            journal=(JournalEntry("post-create-branch", STAGING, A),),
        ),
        "V1",
        "I2",
    ),
    "a third key": (
        published(attempts=(completed(output={**output(X), "more": 1}),)),
        "V2",
        "I3",
    ),
    "no staging commit": (published(staged=None), "V3", "S5"),
    "a staging commit of another": (published(staged=replace(STAGED, parents=(H,))), "V3", "S5"),
    "a staging commit that says something else": (
        published(staged=replace(STAGED, metadata={**IDENTITY, "perago.phase": "confirm"})),
        "V3",
        "S5",
    ),
    "fence hard is not tried": (
        published(arranged=arranged(fence="hard", probing=True)),
        "V3",
        "K3",
    ),
    "others' uncommitted changes are gone": (
        refused(arranged=arranged(Expected.REFUSED, rule="P4", before=H, dirty=True)),
        "V4",
        "P4",
    ),
    "a lease that ended": (
        published(attempts=(failed(status="TIMED_OUT"), completed())),
        "V5",
        "W4",
    ),
    "a branch that is not hidden": (published(shown=(STAGING,)), "V7", "S1"),
    "an execution id that was there before": (published(reused=(STAGING,)), "V7", "S1"),
    "a reason of several lines": (refused(attempts=(failed("one\ntwo"),)), "V9", "R1"),
    "lineage: not on what it supersedes": (
        published(arranged=arranged(planted=frozenset({H}), before=H, fence="lineage")),
        "V1",
        "P1",
    ),
    "no reason": (refused(attempts=(failed(" "),)), "V9", "R1"),
    "another status": (
        refused(attempts=(failed(status="FAILED_WITH_TERMINAL_ERROR"),)),
        "V9",
        "P3",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_broken_thing_is_named_with_its_promise_and_rule(name: str) -> None:
    seen, promise, rule = CASES[name]
    assert (promise, rule) in {(str(one.invariant), one.rule) for one in judge(seen)}
    assert Invariant(promise) in looked_at(seen)


def test_what_failed_closed_is_blamed_only_for_not_completing() -> None:
    seen = published(
        arranged=arranged(planted=frozenset({H}), before=H, rule="P2"),
        head=ABANDONED,
        history=(ABANDONED,),
        tree={**BASE, "ws/stray.txt": "9"},
        attempts=(failed(),),
        journal=(),
    )
    assert {one.invariant for one in judge(seen)} == {Invariant.V5}


def test_a_conditional_replacement_is_seen_by_its_first_half() -> None:
    hard = arranged(planted=frozenset({H}), fence="hard")
    assert judge(published(arranged=hard, intents=1)) == []


def test_a_killed_worker_may_leave_one_named_branch() -> None:
    once = arranged(kills=1)
    assert judge(published(arranged=once, left=(STAGING,))) == []
    (found,) = judge(published(arranged=once, left=("mine",)))
    assert (found.invariant, found.rule) == (Invariant.V7, "S1")


def test_what_conform_wrote_in_the_place_of_a_worker_is_not_the_workers_reason() -> None:
    seen = published(attempts=(failed(f"{CONFORM}: the worker was killed"), completed()))
    assert judge(seen) == []
    assert Invariant.V9 not in looked_at(seen)


def test_a_lost_attempt_may_report_what_it_likes_but_publish_nothing() -> None:
    nothing = arranged(Expected.NOTHING, rule="F1")
    assert judge(kept(arranged=nothing, attempts=(failed("", "CANCELED"),))) == []
    (found,) = judge(kept(arranged=nothing, attempts=(), head=PUBLICATION))
    assert (found.invariant, found.rule) == (Invariant.V1, "F1")


def test_a_lost_attempt_does_not_report_for_the_one_that_has_the_task_now() -> None:
    held = arranged(Expected.NOTHING, rule="F1", held=True)
    assert judge(kept(arranged=held, attempts=(failed("", "IN_PROGRESS"),))) == []
    (found,) = judge(kept(arranged=held, attempts=(failed(),)))
    assert (found.invariant, found.rule) == (Invariant.V9, "F1")


@pytest.mark.parametrize(
    ("more", "broken"),
    [
        ({}, False),
        ({"tree": BASE}, False),
        ({"dirty": True}, True),
        ({"tree": {"ws/new.txt": "4"}}, True),
    ],
)
def test_after_a_kill_the_target_holds_a_or_the_whole_result(
    more: dict[str, Any], broken: bool
) -> None:
    assert bool(at_rest(published(**more))) is broken


@pytest.mark.parametrize("name", [*CONFIRM])
def test_every_word_of_a_publication_is_compared(name: str) -> None:
    wrong = Commit(X, (A,), metadata={**CONFIRM, name: "wrong"})
    # What it names as its staging commit is read, and is then another one, or none.
    staged = None if name == "perago.staging_commit" else STAGED
    (found,) = judge(published(head=wrong, history=(wrong,), staged=staged))
    assert (found.invariant, found.rule) == (Invariant.V3, "S5")
    assert name in found.text


def test_the_commit_that_replaces_is_c_itself() -> None:
    where = arranged(planted=frozenset({H}), before=H, rule="P2")
    head = replace(STAGED, id=C)
    seen = published(
        arranged=where,
        head=head,
        history=(head,),
        staged=None,
        attempts=(completed(C),),
        journal=(JournalEntry("post-create-branch", STAGING, A),),
    )
    assert judge(seen) == []
    merged = replace(head, metadata=CONFIRM)
    (found,) = judge(replace(seen, head=merged, history=(merged,)))
    assert "perago.phase" in found.text


def test_lineage_publishes_on_what_it_supersedes() -> None:
    where = arranged(planted=frozenset({H}), before=H, fence="lineage", rule="K2")
    said = {**CONFIRM, "perago.expected_head": H, "perago.supersedes": H}
    head = Commit(X, (H,), metadata=said)
    staged = replace(STAGED, parents=(H,))
    seen = published(arranged=where, head=head, history=(head, ABANDONED), staged=staged)
    assert judge(seen) == []
    (found,) = judge(replace(seen, head=replace(head, metadata=CONFIRM)))
    assert (found.rule, "perago.supersedes" in found.text) == ("S5", True)


def test_lineage_may_complete_with_what_a_dead_attempt_published() -> None:
    where = arranged(fence="lineage", kills=1)
    dead = replace(completed(), status="TIMED_OUT", output={})
    retry = completed(task_id="t1", retry_count=1, staging="another")
    assert judge(published(arranged=where, attempts=(dead, retry))) == []


def test_changes_that_were_left_on_purpose_are_no_complaint() -> None:
    where = arranged(Expected.REFUSED, rule="P4", before=H, dirty=True)
    assert judge(refused(arranged=where, dirty=True)) == []


@pytest.mark.parametrize("name", ["", "-", "x" * 49, "a b"])
def test_an_execution_id_is_the_rest_of_the_name_and_not_too_long(name: str) -> None:
    one = completed()
    assert execution_of(STAGING, one) == "e0"
    assert (execution_of(one.staging + name, one) is None) is (name != "-")
    assert execution_of(STAGING, replace(one, staging="")) is None
