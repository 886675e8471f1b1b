"""The publish fence, row by row: P1-P3, N1-N4, K1, K2, K3, K6, and what must be visible (P5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from perago.protocol.kinds import FenceKind
from perago.protocol.publication import (
    Decision,
    Keep,
    Merge,
    Refuse,
    Relocate,
    Replace,
    Situation,
    Write,
    decide,
    is_intent,
    refuse_visible,
)
from perago.protocol.values import Commit, Status
from tests.protocol.identities import ABANDONED, EARLIER, ME, METADATA, MY_EXECUTION, Writer, says

FENCES: tuple[FenceKind, ...] = ("head", "lineage", "hard")
A = Commit("A", ("root",))
STANDINGS = {**ABANDONED, "t": Status.TIMED_OUT}


def child(writer: Writer, *parents: str) -> Commit:
    return Commit("H", parents or ("A",), metadata=METADATA[writer])


def decided(fence: FenceKind, head: Commit, staged: str | None) -> Decision:
    steps = () if head.id == "A" else (head,)
    situation = Situation("A", head, staged, ME, range_to_input=steps, standings=STANDINGS)
    return decide(fence, situation)


def rule(decision: Decision) -> str:
    return decision.rule if isinstance(decision, Refuse) else type(decision).__name__


@pytest.mark.parametrize("fence", FENCES)
def test_p1_a_change_on_an_unmoved_head_is_merged_onto_it(fence: FenceKind) -> None:
    assert decided(fence, A, "C") == Merge(head="A", source="C")


@pytest.mark.parametrize("fence", FENCES)
def test_n1_no_change_on_an_unmoved_head_keeps_it(fence: FenceKind) -> None:
    assert decided(fence, A, None) == Keep(head="A")


@pytest.mark.parametrize("writer", Writer)
def test_p2_head_replaces_any_abandoned_child_and_takes_no_permission_from_metadata(
    writer: Writer,
) -> None:
    """S5: who wrote it may only forbid, and the broker calls none of these completed (P2a)."""
    assert decided("head", child(writer), "C") == Replace(head="H", source="C")


@pytest.mark.parametrize("writer", Writer)
def test_n2_head_relocates_any_direct_child_back_to_the_input(writer: Writer) -> None:
    assert decided("head", child(writer), None) == Relocate(head="H", to="A")


@pytest.mark.parametrize("fence", ["head", "hard"])
@pytest.mark.parametrize(("staged", "refused"), [("C", "P3"), (None, "N3")])
@pytest.mark.parametrize(
    "head",
    [
        pytest.param(Commit("H", ("X",)), id="grandchild or stranger"),
        pytest.param(Commit("H", ()), id="another root"),
        pytest.param(Commit("H", ("X", "A")), id="A is only the second parent"),
    ],
)
def test_p3_n3_anything_else_is_refused_and_names_both_heads(
    fence: FenceKind, staged: str | None, refused: str, head: Commit
) -> None:
    decision = decided(fence, head, staged)
    assert isinstance(decision, Refuse)
    assert decision.rule == refused
    assert "H" in decision.reason
    assert "A" in decision.reason


def test_a_two_parent_head_whose_first_parent_is_the_input_is_a_child_of_it() -> None:
    """Section 1: ``parent(X)`` is ``parents[0]``."""
    assert decided("head", Commit("H", ("A", "X")), "C") == Replace("H", "C")


@pytest.mark.parametrize(
    ("metadata", "accepted"),
    [
        pytest.param(METADATA[Writer.EARLIER], True, id="another task id and retry"),
        pytest.param(says(replace(ME, task_id="t"), "e"), True, id="another task id, same retry"),
        pytest.param(says(replace(ME, retry_count=7), "e"), True, id="same task id, another retry"),
        pytest.param(METADATA[Writer.TWIN], False, id="twin of this attempt"),
        pytest.param(METADATA[Writer.MINE], False, id="this very execution"),
        pytest.param(METADATA[Writer.OTHER], False, id="another step"),
        pytest.param(says(replace(EARLIER, iteration=1), "e"), False, id="another iteration"),
        pytest.param(
            says(replace(EARLIER, workflow_instance_id="w2"), "e"), False, id="another workflow"
        ),
        pytest.param({}, False, id="no metadata"),
    ],
)
def test_k3_hard_replaces_only_another_attempt_of_the_same_step(
    metadata: Mapping[str, str], accepted: bool
) -> None:
    head = Commit("H", ("A",), metadata=metadata)
    change, nothing = decided("hard", head, "C"), decided("hard", head, None)
    if accepted:
        assert (change, nothing) == (Replace("H", "C"), Relocate("H", "A"))
    else:
        assert [rule(change), rule(nothing)] == ["K3", "K3"]


@pytest.mark.parametrize("fence", FENCES)
@pytest.mark.parametrize("staged", ["C", None])
def test_k6_an_unfinished_replacement_is_refused(fence: FenceKind, staged: str | None) -> None:
    intent = {**METADATA[Writer.EARLIER], "perago.intent": "replace"}
    head = Commit("H", ("A", "C9"), metadata=intent)
    assert is_intent(head)
    assert rule(decided(fence, head, staged)) == "K6"


def test_k6_a_commit_with_one_parent_is_no_unfinished_replacement() -> None:
    head = Commit("H", ("A",), metadata={"perago.intent": "replace"})
    assert decided("head", head, "C") == Replace("H", "C")


@pytest.mark.parametrize("writer", [Writer.MINE, Writer.TWIN, Writer.EARLIER])
def test_k2_lineage_publishes_on_the_head_its_own_step_made(writer: Writer) -> None:
    assert decided("lineage", child(writer), "C") == Merge(head="H", source="C")
    assert decided("lineage", child(writer), None) == Relocate(head="H", to="A")


@pytest.mark.parametrize("writer", [Writer.OTHER, Writer.SILENT])
@pytest.mark.parametrize("staged", ["C", None])
def test_k2_lineage_refuses_a_head_of_anybody_else(writer: Writer, staged: str | None) -> None:
    assert rule(decided("lineage", child(writer), staged)) == "K2"


def test_k2_lineage_looks_at_every_commit_of_the_range() -> None:
    mine, other = child(Writer.EARLIER, "B"), Commit("B", ("A",), metadata=METADATA[Writer.OTHER])
    situation = Situation("A", mine, "C", ME, range_to_input=(mine, other))
    decision = decide("lineage", situation)
    assert isinstance(decision, Refuse)
    assert "B" in decision.reason


VISIBLE: list[tuple[str, Write, str, Commit, bool]] = [
    ("merged", Merge("A", "C"), "M", Commit("M", ("A",)), True),
    ("merged, then moved on", Merge("A", "C"), "M", Commit("X", ("M",)), False),
    ("another merged on the same head", Merge("A", "C"), "M", Commit("X", ("A",)), False),
    ("merged onto another head", Merge("A", "C"), "M", Commit("M", ("X",)), False),
    ("merged without squash", Merge("A", "C"), "M", Commit("M", ("A", "C")), False),
    ("merge left no parent", Merge("A", "C"), "M", Commit("M", ()), False),
    ("replaced", Replace("H", "C"), "C", Commit("C", ("A",)), True),
    ("replace did nothing", Replace("H", "C"), "H", Commit("H", ("A",)), False),
    ("replace answered another id", Replace("H", "C"), "X", Commit("X", ("A",)), False),
    ("relocated", Relocate("H", "A"), "A", Commit("A", ("root",)), True),
    ("relocate did nothing", Relocate("H", "A"), "H", Commit("H", ("A",)), False),
]


@pytest.mark.parametrize(
    ("decision", "published", "head", "good"),
    [pytest.param(*row[1:], id=row[0]) for row in VISIBLE],
)
def test_p5_only_what_is_visible_counts(
    decision: Write, published: str, head: Commit, good: bool
) -> None:
    problem = refuse_visible(decision, published, head)
    assert (problem is None) is good
    if problem:
        assert head.id in problem


def test_the_identity_of_the_tests_is_the_identity_of_the_protocol() -> None:
    assert METADATA[Writer.MINE]["perago.execution_id"] == MY_EXECUTION
    assert METADATA[Writer.MINE]["perago.logical_task_key"] == "workflow-1:clean_ref:0"


# --- people (Q11) ----------------------------------------------------------------------------


def submitted(fence: FenceKind, head: Commit, staged: str | None, *own: str) -> Decision:
    """Decide for a person whose executions of this attempt are ``own``."""
    steps = () if head.id == "A" else (head,)
    return decide(
        fence,
        Situation(
            "A",
            head,
            staged,
            ME,
            range_to_input=steps,
            standings=STANDINGS,
            submits=frozenset(own),
        ),
    )


@pytest.mark.parametrize("staged", ["C", None])
@pytest.mark.parametrize("fence", FENCES)
def test_q11_a_person_replaces_what_they_published_for_this_task(
    fence: FenceKind, staged: str | None
) -> None:
    """Also under ``hard``, where a twin is refused otherwise: both executions are theirs."""
    wanted = {"lineage": "Merge"}.get(fence, "Replace") if staged else "Relocate"
    assert rule(submitted(fence, child(Writer.TWIN), staged, "execution-twin")) == wanted


@pytest.mark.parametrize("staged", ["C", None])
@pytest.mark.parametrize("fence", FENCES)
def test_q11_a_person_never_replaces_what_another_published_for_this_task(
    fence: FenceKind, staged: str | None
) -> None:
    said = {**METADATA[Writer.TWIN], "perago.person": "ben"}
    found = submitted(fence, Commit("H", ("A",), metadata=said), staged, "execution-other")
    assert isinstance(found, Refuse)
    assert found.rule == ("K3" if fence == "hard" else "Q11")
    if fence != "hard":
        assert "published by ben" in found.reason


@pytest.mark.parametrize("fence", FENCES)
def test_q11_an_earlier_attempt_that_was_given_up_is_replaced_as_by_a_program(
    fence: FenceKind,
) -> None:
    head = child(Writer.EARLIER)
    assert submitted(fence, head, "C") == decided(fence, head, "C")


@pytest.mark.parametrize("fence", FENCES)
def test_q11_nothing_is_at_stake_on_an_unmoved_head(fence: FenceKind) -> None:
    assert submitted(fence, A, "C") == Merge(head="A", source="C")
