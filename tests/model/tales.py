"""The histories that the documentation tells: the shortest that break something, by title.

``python -m tests.model.tales`` prints them as the page shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from unittest.mock import patch

from perago.protocol import adoption
from tests.model.history import at_rest, line, numbered, tell
from tests.model.scenarios import retries, strangers, twins, with_ledger
from tests.model.search import explore
from tests.model.wire import Report
from tests.model.world import GONE, Event, Scenario, State, World

NAIVE = {fence: replace(retries(fence, naive=True), faults=False) for fence in ("head", "hard")}
SHORTEST: dict[str, tuple[Scenario, str]] = {
    "the naive order, head": (NAIVE["head"], "V3"),
    "the naive order, hard": (NAIVE["hard"], "V3"),
    "head, a late merge": (retries("head"), "V4"),
    "head, a late hard reset": (retries("head", "H0"), "V3"),
    "head, a twin": (twins("head"), "V3"),
    "head, another workflow": (strangers("head", "H0"), "V3"),
    "lineage, a late merge": (retries("lineage"), "V4"),
    "lineage, a late relocation": (retries("lineage", "H0", (False, True)), "V3"),
    "hard, a late merge after a no-op": (retries("hard", "A", (True, False)), "N4"),
    "hard, a person's commit": (replace(retries("hard"), person=True, lost=1), "V1"),
}
RETURNED = "hard, a head that came back"
ADOPTED = "hard, an adoption without that rule"
THREE_WITH_LEDGER = with_ledger(replace(retries("hard", "A", (True,) * 3), lost=0))


@cache
def tale(title: str) -> str:
    """Tell one of them."""
    if title == RETURNED:
        return _returned()
    if title == ADOPTED:
        with patch.object(adoption, "refuse_others", return_value=None):
            return _shortest(THREE_WITH_LEDGER, "V3")
    return _shortest(*SHORTEST[title])


def _shortest(scenario: Scenario, name: str) -> str:
    found = explore(World(scenario))
    state = found.broken[name][0]
    return _written(tell(found, state), found.world, state)


def _written(lines: list[str], world: World, state: State) -> str:
    accepted = ", ".join(ref for ref in state.accepted if ref) or "nothing"
    return f"{numbered(lines)}=>  branch: {at_rest(world, state)}; accepted: {accepted}\n"


def _returned() -> str:
    """Hold a merge up until a third attempt has put the head back to where it was (ADR 0010)."""
    world = World(retries("hard", "A", (True, True, False)))
    state = world.first()
    events: list[Event] = []

    def go(step: tuple[Event, State]) -> State:
        events.append(step[0])
        return step[1]

    def until(who: int, stop: Callable[[State], bool]) -> None:
        nonlocal state
        while not stop(state):
            state = go(world.answer(state, who))

    def moves(here: State) -> bool:
        return len(world.heard(here, 0)) == 4

    def reports(here: State) -> bool:
        standing = world.standing(here, 1)
        return standing is not None and isinstance(standing.question, Report)

    until(0, moves)
    state = go(world.lose(state, 0))
    state = go((Event("over", 0), world.time_out(state, 0)))
    until(1, reports)
    state = go((Event("over", 1), world.time_out(state, 1)))
    until(2, lambda here: here.writers[2] == GONE)
    state = go(world.arrive(state, state.flight[0]))
    return _written([line(world, event) for event in events], world, state)


def titles() -> Iterator[str]:
    """Name them all, in the order of the page."""
    for title in SHORTEST:
        if title == "hard, a person's commit":
            yield from (RETURNED, ADOPTED)
        yield title


if __name__ == "__main__":
    for each in titles():
        print(f"```text\n# {each}\n{tale(each)}```\n")  # noqa: T201 - that is its purpose
