"""Which attempt directories go: W5, V7."""

from __future__ import annotations

import pytest

from perago.protocol.sweep import FoundAttemptDir, Owner, SweepDecision, judge

DAY = 86_400.0

ALIVE, GONE, FOREIGN = Owner.ALIVE, Owner.GONE, Owner.FOREIGN


def verdict(owner: Owner | None, age: float, **more: bool | None) -> SweepDecision:
    return judge(FoundAttemptDir("room", age, owner, **more), DAY)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("owner", "age", "removed", "why"),
    [
        pytest.param(ALIVE, 0.0, False, "alive", id="working"),
        pytest.param(ALIVE, 10 * DAY, False, "alive", id="working for days"),
        pytest.param(GONE, 0.0, True, "gone", id="orphan, fresh"),
        pytest.param(GONE, 10 * DAY, True, "gone", id="orphan, old"),
        pytest.param(FOREIGN, 0.0, False, "at work", id="another's, fresh"),
        pytest.param(FOREIGN, DAY - 1, False, "at work", id="another's, nearly old"),
        pytest.param(FOREIGN, DAY, True, "time to live", id="another's, old"),
        pytest.param(FOREIGN, -5.0, False, "at work", id="another's, from the future"),
        pytest.param(None, 10 * DAY, False, "no marker says", id="no marker, old"),
    ],
)
def test_w5_orphans_go_and_living_owners_keep_theirs(
    owner: Owner | None, age: float, removed: bool, why: str
) -> None:
    found = verdict(owner, age)
    assert found.remove is removed
    assert why in found.why


@pytest.mark.parametrize(
    ("age", "removed", "why"),
    [
        pytest.param(0.0, False, "in the making", id="fresh"),
        pytest.param(DAY - 1, False, "in the making", id="nearly old"),
        pytest.param(DAY, True, "time to live", id="old"),
        pytest.param(-5.0, False, "in the making", id="from the future"),
    ],
)
def test_w5_without_a_marker_only_what_has_no_content_goes(
    age: float, removed: bool, why: str
) -> None:
    found = verdict(None, age, bare=True)
    assert found.remove is removed
    assert why in found.why


@pytest.mark.parametrize("age", [0.0, 10 * DAY], ids=["fresh", "old"])
@pytest.mark.parametrize("in_progress", [True, False])
def test_w5_of_an_owner_that_cannot_be_seen_the_broker_tells(age: float, in_progress: bool) -> None:
    """Whatever its age: an attempt that the broker calls in progress keeps its directory."""
    assert verdict(FOREIGN, age, in_progress=in_progress).remove is not in_progress
    assert verdict(None, age, in_progress=in_progress, bare=True).remove is not in_progress


@pytest.mark.parametrize("in_progress", [True, False, None])
def test_w5_an_owner_that_can_be_seen_is_not_asked_about(in_progress: bool | None) -> None:
    assert not verdict(ALIVE, 10 * DAY, in_progress=in_progress).remove
    assert verdict(GONE, 0.0, in_progress=in_progress).remove


@pytest.mark.parametrize("owner", list(Owner))
def test_w5_what_its_owner_could_not_remove_is_tried_again(owner: Owner) -> None:
    found = verdict(owner, 0.0, abandoned=True)
    assert found.remove
    assert "could not remove" in found.why


@pytest.mark.parametrize("in_progress", [True, False, None])
@pytest.mark.parametrize("abandoned", [True, False])
def test_v6_without_a_marker_content_never_goes(in_progress: bool | None, abandoned: bool) -> None:
    assert not verdict(None, 1e9, in_progress=in_progress, abandoned=abandoned).remove


def test_w5_a_time_to_live_of_zero_removes_whatever_has_no_marker() -> None:
    assert judge(FoundAttemptDir("room", 0.0, None, bare=True), 0.0).remove
