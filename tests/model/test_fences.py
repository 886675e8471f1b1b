"""Every history of the publication protocol, breadth first: what each fence keeps (V1, V3, V4, V5).

Attempts are paused anywhere, killed anywhere, given up by the engine at any time; any request that
moves the branch, and any report, may stay without an answer and be applied at any later time, or
never. Under ``hard`` a request may even be applied any number of times. A state is visited once.

``PERAGO_MODEL_FULL=1`` adds the largest worlds.
"""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from perago.protocol import publication
from perago.protocol.kinds import FenceKind
from tests.model.attempt import FENCES
from tests.model.history import at_rest, numbered, tell
from tests.model.scenarios import (
    retries,
    retries_and_stranger,
    steps,
    strangers,
    twins,
    twins_and_retry,
)
from tests.model.search import Search, explore
from tests.model.world import Scenario, Start, World
from tests.patience import TEST_SECONDS

FULL = bool(os.environ.get("PERAGO_MODEL_FULL"))
STARTS: tuple[Start, ...] = ("A", "H0")
KEPT = ("V1", "V3", "V4")
BOTH, FIRST, SECOND, NONE = (True, True), (True, False), (False, True), (False, False)
CHANGES = {"both change": BOTH, "first changes": FIRST, "second changes": SECOND, "neither": NONE}


def broken(found: Search) -> set[str]:
    """Name what some history breaks, without N4."""
    return set(found.broken) & set(KEPT)


def assert_kept(found: Search, *names: str) -> None:
    """Fail with the shortest history that breaks one of these."""
    for name in names:
        if states := found.broken.get(name):
            raise AssertionError(
                f"{name} is broken:\n{numbered(tell(found, states[0]))}"
                f"    {at_rest(found.world, states[0])}"
            )


def assert_everybody_can_complete(found: Search) -> None:
    """Fail when there is a writer that never gets its completion accepted: nothing was shown."""
    accepted = {state.accepted for state in found.came_from}
    for number in range(max(found.world.scenario.tasks) + 1):
        assert any(refs[number] for refs in accepted), number


# --- hard: nothing is lost in any history -------------------------------------------------------

HARD: dict[str, Scenario] = {
    f"{name}, {text}, on {start}": scenario("hard", start, changes)
    for name, scenario in {"retries": retries, "twins": twins}.items()
    for text, changes in CHANGES.items()
    for start in STARTS
}
if not FULL:
    HARD = {
        name: replace(scenario, lost=2 if name.startswith("retries, both") else 1)
        for name, scenario in HARD.items()
    }
HARD |= {f"strangers, on {start}": strangers("hard", start) for start in STARTS}
HARD |= {
    "retries and a stranger, on A": replace(retries_and_stranger("hard"), lost=1),
    "twins and a retry, on A": replace(twins_and_retry("hard"), lost=1),
}
if FULL:
    HARD |= {
        "retries and a stranger, on H0": replace(retries_and_stranger("hard", "H0"), lost=1),
        "three retries, on A": replace(retries("hard", "A", (True,) * 3), lost=1),
    }
REFUSED = {"strangers, on H0", "retries and a stranger, on H0"}
"""Where the stranger is always refused: what it meets is another step's (K3)."""


@pytest.mark.timeout((3 if FULL else 1) * TEST_SECONDS)
@pytest.mark.parametrize("name", HARD)
def test_k3_v1_v3_v4_under_hard_no_history_loses_stacks_or_mixes(name: str) -> None:
    found = explore(World(HARD[name]))
    assert_kept(found, *KEPT)
    if name not in REFUSED:
        assert_everybody_can_complete(found)
    assert_v5(found)


def assert_v5(found: Search) -> None:
    """From wherever all others died or gave up, one more attempt completes, or fails closed."""
    world = found.world
    for head in {state.head for state in found.came_from if not any(state.accepted)}:
        strange = any(name.startswith(("Xw", "Cw")) for name in world.library.line(head))
        assert world.alone(world.next_attempt(), head).completed is not strange, head


# --- head and lineage: what is lost, exactly ----------------------------------------------------

Expected = dict[tuple[FenceKind, Start], set[str]]
RETRIES: dict[tuple[FenceKind, Start, tuple[bool, bool]], set[str]] = {
    ("head", "A", BOTH): {"V1", "V4"},
    ("head", "H0", BOTH): {"V3"},
    ("head", "H0", SECOND): {"V3"},
    ("lineage", "A", BOTH): {"V4"},
    ("lineage", "H0", BOTH): {"V4"},
    ("lineage", "H0", SECOND): {"V3"},
}
TWINS: dict[tuple[FenceKind, Start, tuple[bool, bool]], set[str]] = {
    ("head", "A", BOTH): {"V1", "V3", "V4"},
    ("head", "A", FIRST): {"V3"},
    ("head", "A", SECOND): {"V3"},
    ("head", "H0", BOTH): {"V3"},
    ("head", "H0", FIRST): {"V3"},
    ("head", "H0", SECOND): {"V3"},
    ("lineage", "A", BOTH): {"V4"},
    ("lineage", "A", FIRST): {"V3"},
    ("lineage", "A", SECOND): {"V3"},
    ("lineage", "H0", BOTH): {"V4"},
    ("lineage", "H0", FIRST): {"V3"},
    ("lineage", "H0", SECOND): {"V3"},
}
STRANGERS: Expected = {
    ("head", "A"): {"V1", "V4"},
    ("head", "H0"): {"V3"},
    ("lineage", "A"): {"V1", "V4"},
    ("lineage", "H0"): set(),
}
ALL_THREE: Expected = {
    ("head", "A"): {"V1", "V3", "V4"},
    ("head", "H0"): {"V3"},
    ("lineage", "A"): {"V1", "V4"},
    ("lineage", "H0"): {"V4"},
}
SOFT: tuple[FenceKind, ...] = ("head", "lineage")


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("fence", SOFT)
def test_section_14_what_two_attempts_can_lose_under_a_soft_fence(
    fence: FenceKind, start: Start, changes: tuple[bool, bool]
) -> None:
    key = fence, start, changes
    assert broken(explore(World(retries(*key)))) == RETRIES.get(key, set())
    assert broken(explore(World(twins(*key)))) == TWINS.get(key, set())


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("fence", SOFT)
def test_section_14_writers_of_one_branch_have_to_be_serial_under_a_soft_fence(
    fence: FenceKind, start: Start
) -> None:
    assert broken(explore(World(strangers(fence, start)))) == STRANGERS[fence, start]
    if start == "A" or FULL:
        three = replace(retries_and_stranger(fence, start), lost=1)
        assert broken(explore(World(three))) == ALL_THREE[fence, start]


# --- two steps of one workflow that were given the same A ---------------------------------------

LATER = {"changes": (True, True, True), "changes nothing": (True, True, False)}


@pytest.mark.parametrize("changes", LATER.values(), ids=LATER)
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("fence", FENCES)
def test_p2a_v3_a_later_step_with_the_same_input_never_takes_a_completed_step_back(
    fence: FenceKind, start: Start, changes: tuple[bool, ...]
) -> None:
    """Crashes, time-outs and lost reports included; and it fails closed instead of completing."""
    found = explore(World(replace(steps(fence, start, changes), lost=0, short=True)))
    assert_kept(found, *KEPT)
    assert not any(state.accepted[2] for state in found.came_from)
    assert any(state.accepted[0] for state in found.came_from)
    assert any(state.accepted[1] for state in found.came_from)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("fence", FENCES)
def test_p2a_a_later_step_adds_nothing_to_what_the_attempts_before_it_can_lose(
    fence: FenceKind, start: Start
) -> None:
    alone = explore(World(replace(retries(fence, start), lost=1)))
    assert broken(explore(World(replace(steps(fence, start), lost=1)))) == broken(alone)


@pytest.mark.parametrize("changes", LATER.values(), ids=LATER)
def test_p2a_is_what_keeps_a_completed_step(
    changes: tuple[bool, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the question to the engine, the later step replaces it with a success."""
    monkeypatch.setattr(publication, "object_to_replacing", lambda *_: None)
    found = explore(World(replace(steps("head", "A", changes), lost=0, short=True)))
    assert "V3" in found.broken
    assert any(state.accepted[2] for state in found.broken["V3"])


@pytest.mark.parametrize("fence", FENCES)
def test_k6_a_person_who_commits_straight_to_the_branch_is_seen_by_no_fence(
    fence: FenceKind,
) -> None:
    """Under ``hard`` it does harm only between the halves of a replacement, and loses nothing."""
    found = explore(World(replace(retries(fence), person=True, lost=1)))
    lost = {"head": {"V1", "V3", "V4"}, "lineage": {"V4"}, "hard": {"V1", "V4"}}
    assert broken(found) == lost[fence]
    if fence == "hard":
        for state in found.broken["V1"]:
            line = found.world.library.line(state.head)
            assert [name[0] for name in line[:2]] == ["F", "I"], line


@pytest.mark.parametrize("fence", FENCES)
def test_f3_without_a_pause_in_the_window_and_without_strangers_no_fence_loses_anything(
    fence: FenceKind,
) -> None:
    """Crashes, time-outs and lost reports alone do no harm: the window is all there is."""
    for start in STARTS:
        found = explore(World(replace(retries(fence, start), lost=0, short=True)))
        assert_kept(found, *KEPT)
        assert_everybody_can_complete(found)
        assert_v5(found)
