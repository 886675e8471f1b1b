"""A publish call whose answer was lost, settled by reading the target: P6, P11, G2."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from perago.protocol.publication import Merge, Relocate, Replace, Write
from perago.protocol.recovery import (
    HalfReplaced,
    Landed,
    Lost,
    Next,
    PublishAnswer,
    Settlement,
    StillUnknown,
    proceed,
    settle,
    wanted_by,
)
from perago.protocol.values import Commit
from tests.protocol.identities import METADATA, MY_EXECUTION, Writer

MERGE, REPLACE, RELOCATE = Merge("A", "C"), Replace("H", "C"), Relocate("H", "A")
INTENT = {"perago.intent": "replace"}
MINE: Mapping[str, str] = METADATA[Writer.MINE]
TWIN: Mapping[str, str] = METADATA[Writer.TWIN]

STATES: list[tuple[str, Write, Commit, Settlement]] = [
    ("merge: head still A", MERGE, Commit("A", ("r",)), StillUnknown()),
    ("merge: head still A, made by me", MERGE, Commit("A", ("r",), metadata=MINE), StillUnknown()),
    ("merge: mine on A", MERGE, Commit("M", ("A",), metadata=MINE), Landed("M")),
    ("merge: a twin's on A", MERGE, Commit("M", ("A",), metadata=TWIN), Lost("M")),
    ("merge: a silent commit on A", MERGE, Commit("M", ("A",)), Lost("M")),
    ("merge: mine, but on another head", MERGE, Commit("M", ("X",), metadata=MINE), Lost("M")),
    ("merge: mine with two parents", MERGE, Commit("M", ("A", "C"), metadata=MINE), Lost("M")),
    ("merge: mine applied twice", MERGE, Commit("N", ("M",), metadata=MINE), Lost("N")),
    ("merge: mine without parents", MERGE, Commit("M", (), metadata=MINE), Lost("M")),
    ("merge: somebody built on mine", MERGE, Commit("X", ("M",)), Lost("X")),
    ("replace: head still H", REPLACE, Commit("H", ("A",)), StillUnknown()),
    ("replace: head is C", REPLACE, Commit("C", ("A",), metadata=MINE), Landed("C")),
    ("replace: head is A again", REPLACE, Commit("A", ("r",)), Lost("A")),
    ("replace: another's on A", REPLACE, Commit("X", ("A",), metadata=TWIN), Lost("X")),
    ("replace: mine, but not C", REPLACE, Commit("X", ("A",), metadata=MINE), Lost("X")),
    ("relocate: head still H", RELOCATE, Commit("H", ("A",)), StillUnknown()),
    ("relocate: head is A", RELOCATE, Commit("A", ("r",)), Landed("A")),
    ("relocate: head elsewhere", RELOCATE, Commit("X", ("A",)), Lost("X")),
    ("replace: my intent", REPLACE, Commit("M", ("H", "C"), metadata=INTENT), HalfReplaced("M")),
    ("replace: another's intent", REPLACE, Commit("M", ("H", "D"), metadata=INTENT), Lost("M")),
    ("replace: an intent on mine", REPLACE, Commit("M", ("C", "D"), metadata=INTENT), Lost("M")),
    ("replace: a merge of mine, no intent", REPLACE, Commit("M", ("H", "C")), Lost("M")),
    ("replace: mine the wrong way", REPLACE, Commit("M", ("C", "H"), metadata=INTENT), Lost("M")),
    (
        "relocate: an intent to A",
        RELOCATE,
        Commit("M", ("H", "A"), metadata=INTENT),
        HalfReplaced("M"),
    ),
    ("relocate: another's intent", RELOCATE, Commit("M", ("H", "D"), metadata=INTENT), Lost("M")),
    ("merge: another's intent", MERGE, Commit("M", ("A", "D"), metadata=INTENT), Lost("M")),
]


@pytest.mark.parametrize(
    ("decision", "head", "expected"), [pytest.param(*row[1:], id=row[0]) for row in STATES]
)
def test_p6_the_state_of_the_target_is_the_answer(
    decision: Write, head: Commit, expected: Settlement
) -> None:
    assert settle(decision, head, MY_EXECUTION) == expected


@pytest.mark.parametrize("decision", [MERGE, REPLACE, RELOCATE], ids=["merge", "replace", "reset"])
def test_p11_a_head_that_has_not_moved_never_proves_anything(decision: Write) -> None:
    """Neither landed nor lost, however often it is read: the call may still be applied."""
    before = Commit(decision.head, ("r",), metadata=MINE)
    answers = {settle(decision, before, MY_EXECUTION) for _ in range(3)}
    assert answers == {StillUnknown()}


@pytest.mark.parametrize("writer", [writer for writer in Writer if writer is not Writer.MINE])
def test_p6_nobody_elses_merge_is_taken_for_ours(writer: Writer) -> None:
    head = Commit("M", ("A",), metadata=METADATA[writer])
    assert settle(MERGE, head, MY_EXECUTION) == Lost("M")


def test_what_a_decision_wants_on_the_branch() -> None:
    assert [wanted_by(decision) for decision in (MERGE, REPLACE, RELOCATE)] == ["C", "C", "A"]


# --- fence hard: what follows an answer ---------------------------------------------------------

UNKNOWN, RACE, REFUSED = PublishAnswer.UNKNOWN, PublishAnswer.RACE, PublishAnswer.REFUSED
# What the target shows; then for the merge, and for the reset to "^2", by answer.
FOLLOWS: list[tuple[Settlement, dict[PublishAnswer, Next], dict[PublishAnswer, Next]]] = [
    (
        Landed("C"),
        dict.fromkeys(PublishAnswer, Next.DONE),
        dict.fromkeys(PublishAnswer, Next.DONE),
    ),
    (
        HalfReplaced("M"),
        dict.fromkeys(PublishAnswer, Next.RESET),
        {UNKNOWN: Next.RESET, RACE: Next.RESET, REFUSED: Next.GIVE_UP},
    ),
    (
        StillUnknown(),
        {UNKNOWN: Next.SEND, RACE: Next.GIVE_UP, REFUSED: Next.GIVE_UP},
        dict.fromkeys(PublishAnswer, Next.LOST),
    ),
    (
        Lost("X"),
        {UNKNOWN: Next.LOST, RACE: Next.LOST, REFUSED: Next.GIVE_UP},
        dict.fromkeys(PublishAnswer, Next.LOST),
    ),
]


@pytest.mark.parametrize("answer", PublishAnswer)
@pytest.mark.parametrize("resetting", [False, True], ids=["merge", "reset"])
@pytest.mark.parametrize("row", FOLLOWS, ids=[type(row[0]).__name__ for row in FOLLOWS])
def test_k3_what_follows_an_answer_under_hard(
    row: tuple[Settlement, dict[PublishAnswer, Next], dict[PublishAnswer, Next]],
    resetting: bool,
    answer: PublishAnswer,
) -> None:
    state, after_merge, after_reset = row
    expected = (after_reset if resetting else after_merge)[answer]
    assert proceed(state, answer, resetting=resetting) is expected


def test_p8_nothing_is_sent_again_on_a_head_that_is_not_the_expected_one() -> None:
    """Whatever came as the answer: losers never replace winners."""
    for answer in PublishAnswer:
        for resetting in (False, True):
            assert proceed(Lost("X"), answer, resetting=resetting) in {Next.LOST, Next.GIVE_UP}
