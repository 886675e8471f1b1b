"""A publish call whose answer was lost, settled by reading the target: P6, P11, G2."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from perago.protocol.publication import Merge, Relocate, Replace, Write
from perago.protocol.recovery import Landed, Lost, Settlement, StillUnknown, settle
from perago.protocol.values import Commit
from tests.protocol.identities import METADATA, MY_EXECUTION, Writer

MERGE, REPLACE, RELOCATE = Merge("A", "C"), Replace("H", "C"), Relocate("H", "A")
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
