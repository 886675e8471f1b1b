"""The order that F3 forbids: ask the engine, then read the head. It loses what was completed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perago.protocol.kinds import FenceKind
from tests.model.attempt import FENCES
from tests.model.history import tell
from tests.model.scenarios import retries
from tests.model.search import explore
from tests.model.tales import NAIVE
from tests.model.world import Start, World

SHORTEST = [
    "attempt 1 asks the engine: IN_PROGRESS",
    "attempt 1 asks the engine: IN_PROGRESS",
    "the engine gives attempt 1 up, and hands out the next",
    "attempt 2 asks the engine: IN_PROGRESS",
    "attempt 2 asks the engine: IN_PROGRESS",
    "attempt 2 reads the head: A",
    "attempt 2 merges C2: the head is X2",
    "attempt 2 reads the head: X2",
    "attempt 1 reads the head: X2",
    "attempt 1 asks the engine who made the head: task-2, IN_PROGRESS",
    "attempt 2 reports: COMPLETED with X2, accepted",
    "attempt 1 resets the branch to C1: the head is C1",
]


def test_f3_the_shortest_history_in_which_the_naive_order_loses_a_completed_publication() -> None:
    found = explore(World(NAIVE["head"]))
    lost = found.broken["V3"][0]
    assert tell(found, lost) == SHORTEST
    assert (lost.accepted, lost.head) == (("", "X2"), "C1")


@pytest.mark.parametrize("start", ["A", "H0"])
@pytest.mark.parametrize("fence", FENCES)
def test_f3_no_fence_mends_the_naive_order_and_the_right_one_needs_no_more_than_hard(
    fence: FenceKind, start: Start
) -> None:
    """Even compare-and-set does not help: the head it compares with is the completed one."""
    naive = replace(retries(fence, start, naive=True), faults=False)
    lost = "V3" in explore(World(naive)).broken
    assert lost is (fence != "lineage")  # It publishes on what it meets; a no-op would lose it.
    ordered = explore(World(replace(retries(fence, start), faults=False)))
    assert ("V3" in ordered.broken) is (fence == "head" and start == "H0")


def test_f3_under_lineage_the_naive_order_loses_a_completed_publication_to_a_no_op() -> None:
    naive = replace(retries("lineage", "A", (False, True), naive=True), faults=False)
    found = explore(World(naive))
    assert tell(found, found.broken["V3"][0])[-1] == (
        "attempt 1 resets the branch to A: the head is A"
    )
    ordered = replace(retries("lineage", "A", (False, True)), faults=False)
    assert "V3" not in explore(World(ordered)).broken
