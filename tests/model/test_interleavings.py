"""All 252 orders of two publishers of five turns, for each fence kind (F3, K1 to K3, V1, V3, V4).

The publishers are the real lifecycle; a turn of theirs is one act. Each order is a case: two
retries, two deliveries of one attempt and two workflows, on a fresh branch and on an abandoned
publication. Under ``hard`` nothing breaks. Under the other two, what breaks is said exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product

import pytest

from perago.protocol.kinds import FenceKind
from tests.docs.pages import text_of
from tests.model.attempt import FENCES
from tests.model.properties import Properties
from tests.model.scenarios import retries, strangers, twins
from tests.model.turns import Turns, orders, play
from tests.model.world import Scenario, Start, World

Breaks = Callable[[Turns], bool]
RELATIONS: dict[str, Callable[[FenceKind, Start], Scenario]] = {
    "retries": retries,
    "twins": twins,
    "strangers": strangers,
}
STARTS: tuple[Start, ...] = ("A", "H0")


def _never(_: Turns) -> bool:
    return False


def _window(turns: Turns) -> bool:
    return turns.overlap


def _window_of_retries(turns: Turns) -> bool:
    return turns.both_current and turns.overlap


def _late_attempt(turns: Turns) -> bool:
    return turns.both_current and turns.pauses(0)


def _overtaken(turns: Turns) -> bool:
    return turns.overtakes(0) or turns.overtakes(1)


def _overtaken_or_replaced(turns: Turns) -> bool:
    return _overtaken(turns) or (turns.overlap and turns.first_reports_first)


# A late merge stacks and mixes two results (V1, V4); a late hard reset takes one away (V3).
EXPECTED: dict[tuple[str, str, Start], dict[str, Breaks]] = {
    ("head", "retries", "A"): {"V1": _window_of_retries, "V4": _window_of_retries},
    ("head", "retries", "H0"): {"V3": _late_attempt},
    ("head", "twins", "A"): {"V1": _window, "V3": _overtaken, "V4": _window},
    ("head", "twins", "H0"): {"V3": _overtaken_or_replaced},
    # Section 14: under `head` writers of one branch have to be serial.
    # Who begins when the other has published is refused, for that task is open or completed (P2a).
    ("head", "strangers", "A"): {"V1": _window, "V4": _window},
    ("head", "strangers", "H0"): {"V3": _window},
    # K2 allows a step to publish on itself; two results in one tree it does not.
    ("lineage", "retries", "A"): {"V4": _window_of_retries},
    ("lineage", "retries", "H0"): {"V4": _window_of_retries},
    ("lineage", "twins", "A"): {"V4": _window},
    ("lineage", "twins", "H0"): {"V4": _window},
    ("lineage", "strangers", "A"): {"V1": _window, "V4": _window},
    ("lineage", "strangers", "H0"): {},
}


@cache
def _world(fence: FenceKind, relation: str, start: Start) -> tuple[World, Properties]:
    world = World(replace(RELATIONS[relation](fence, start), faults=False))
    return world, Properties(world)


def test_two_publishers_of_five_turns_have_252_orders() -> None:
    assert len(set(orders())) == 252


@pytest.mark.parametrize("order", [pytest.param(order, id=str(Turns(order))) for order in orders()])
@pytest.mark.parametrize("fence", FENCES)
def test_f3_two_publishers(fence: FenceKind, order: tuple[int, ...]) -> None:
    turns = Turns(order)
    for relation in RELATIONS:
        for start in STARTS:
            world, properties = _world(fence, relation, start)
            state = play(world, order)
            expected = EXPECTED.get((fence, relation, start), {})
            for name in ("V1", "V3", "V4"):
                broken = name in properties.broken(state)
                assert broken is expected.get(name, _never)(turns), (name, relation, start, state)


@pytest.mark.parametrize("fence", FENCES)
def test_v5_alone_in_every_order_somebody_completes_or_all_have_failed_closed(
    fence: FenceKind,
) -> None:
    """Under ``hard``, whoever comes after two that have failed completes."""
    for start in STARTS:
        world, _ = _world(fence, "retries", start)
        ends = [play(world, order) for order in orders()]
        assert any(state.accepted[0] for state in ends)
        assert any(state.accepted[1] for state in ends)
        for state in ends:
            if fence == "hard" and not any(state.accepted):
                assert world.alone(world.next_attempt(), state.head).completed


def count_rows() -> list[str]:
    """Count the orders that break something, as a table for the documentation."""
    rows = ["| | `head` | `lineage` | `hard` |", "| --- | --- | --- | --- |"]
    names = {"retries": "two attempts", "twins": "twins", "strangers": "two workflows"}
    places = {"A": "on A", "H0": "on an abandoned publication"}
    for relation, start in product(RELATIONS, STARTS):
        cells = []
        for fence in FENCES:
            world, properties = _world(fence, relation, start)
            found = Counter(
                name for order in orders() for name in properties.broken(play(world, order))
            )
            told = [(found["V3"], "lose"), (found["V4"], "mix")]
            cells.append(", ".join(f"{count} {text}" for count, text in told if count) or "0")
        rows.append(f"| {names[relation]}, {places[start]} | {' | '.join(cells)} |")
    return rows


def test_the_page_counts_the_orders_that_break_something() -> None:
    page = text_of("docs/explanation/interleavings.md")
    assert "\n".join(count_rows()) in page
