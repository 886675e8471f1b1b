"""Fence ``lineage``: the first-parent range and the plan of a publication (K2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from perago.protocol.lineage import (
    MAX_RANGE,
    Broken,
    WorkspacePublicationPlan,
    first_parent_range,
    plan,
    refuse_range,
)
from perago.protocol.publication import Merge, Refuse, Situation, decide
from perago.protocol.values import Commit, WorkspaceInput
from tests.protocol.identities import ABANDONED, ME, METADATA, MY_KEY, Writer

WORKSPACE = WorkspaceInput("lake", "main", "commit", "A")
MINE = METADATA[Writer.EARLIER]


def history(above: int, *, writers: Mapping[int, Writer] | None = None) -> Iterator[Commit]:
    """Walk ``above`` commits down to A, then on to the root; number 1 sits on A."""
    for number in range(above, 0, -1):
        parent = f"c{number - 1}" if number > 1 else "A"
        writer = (writers or {}).get(number, Writer.EARLIER)
        yield Commit(f"c{number}", (parent,), metadata=METADATA[writer])
    yield Commit("A", ("root",))
    yield Commit("root", ())


@pytest.mark.parametrize("above", [0, 1, 2, MAX_RANGE - 1, MAX_RANGE])
def test_k2_the_range_excludes_the_input_and_may_hold_1024_commits(above: int) -> None:
    found = first_parent_range("A", history(above))
    assert not isinstance(found, Broken)
    assert [commit.id for commit in found] == [f"c{n}" for n in range(above, 0, -1)]
    assert refuse_range(found, MY_KEY, "A") is None


@pytest.mark.parametrize("above", [MAX_RANGE + 1, MAX_RANGE + 2, 5000])
def test_k2_more_than_1024_commits_are_refused(above: int) -> None:
    found = first_parent_range("A", history(above))
    assert found is Broken.TOO_LONG
    assert refuse_range(found, MY_KEY, "A") == (
        "target branch advanced beyond supported publish range A"
    )


def test_k2_a_history_without_the_input_is_refused() -> None:
    found = first_parent_range("X", history(3))
    assert found is Broken.NO_INPUT
    assert refuse_range(found, MY_KEY, "X") == (
        "target branch no longer contains workspace input ref X"
    )
    assert first_parent_range("A", iter(())) is Broken.NO_INPUT


def test_k2_the_walk_stops_at_the_input() -> None:
    """A long past costs nothing: what is below A is never asked for."""
    walk = history(1)
    first_parent_range("A", walk)
    assert next(walk).id == "root"


@pytest.mark.parametrize("number", [1, 2, 3], ids=["oldest", "middle", "head"])
@pytest.mark.parametrize(
    ("writer", "said"),
    [(Writer.OTHER, "step workflow-1:load_ref:0"), (Writer.SILENT, "left no logical task key")],
    ids=["another step", "no key"],
)
def test_k2_one_foreign_commit_anywhere_is_a_mismatch(
    number: int, writer: Writer, said: str
) -> None:
    found = first_parent_range("A", history(3, writers={number: writer}))
    problem = refuse_range(found, MY_KEY, "A") or ""
    assert said in problem
    assert f"c{number}" in problem


@pytest.mark.parametrize(
    ("broken", "text"),
    [
        (Broken.TOO_LONG, "advanced beyond supported publish range"),
        (Broken.NO_INPUT, "no longer contains workspace input ref"),
    ],
)
@pytest.mark.parametrize("staged", ["C", None])
def test_k2_both_texts_reach_the_refusal(broken: Broken, text: str, staged: str | None) -> None:
    situation = Situation("A", Commit("H", ("X",)), staged, ME, range_to_input=broken)
    decision = decide("lineage", situation)
    assert isinstance(decision, Refuse)
    assert decision.rule == "K2"
    assert text in decision.reason


def test_k2_a_chain_of_own_publications_is_advanced_at_its_head() -> None:
    steps = first_parent_range("A", history(MAX_RANGE))
    assert not isinstance(steps, Broken)
    situation = Situation("A", steps[0], "C", ME, range_to_input=steps, standings=ABANDONED)
    assert decide("lineage", situation) == Merge(head=f"c{MAX_RANGE}", source="C")


@pytest.mark.parametrize(
    ("head", "supersedes"), [("A", ""), ("H", "H")], ids=["nothing superseded", "own head"]
)
def test_k2_the_plan_names_its_base_and_what_it_supersedes(head: str, supersedes: str) -> None:
    assert plan(WORKSPACE, ME, head) == WorkspacePublicationPlan(
        target_branch="main",
        input_ref="A",
        expected_head=head,
        supersedes=supersedes,
        logical_task_key=MY_KEY,
    )
