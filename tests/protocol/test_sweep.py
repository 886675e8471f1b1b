"""Which attempt directories go: W5, V7."""

from __future__ import annotations

import pytest

from perago.protocol.sweep import FoundRoom, judge

DAY = 86_400.0


@pytest.mark.parametrize(
    ("marker", "alive", "age", "removed", "why"),
    [
        pytest.param(True, True, 0.0, False, "alive", id="working"),
        pytest.param(True, True, 10 * DAY, False, "alive", id="working for days"),
        pytest.param(True, False, 0.0, True, "gone", id="orphan, fresh"),
        pytest.param(True, False, 10 * DAY, True, "gone", id="orphan, old"),
        pytest.param(False, False, 0.0, False, "in the making", id="no marker, fresh"),
        pytest.param(False, False, DAY - 1, False, "in the making", id="no marker, nearly old"),
        pytest.param(False, False, DAY, True, "time to live", id="no marker, old"),
        pytest.param(False, False, -5.0, False, "in the making", id="no marker, from the future"),
    ],
)
def test_w5_orphans_go_and_living_owners_keep_theirs(
    marker: bool, alive: bool, age: float, removed: bool, why: str
) -> None:
    verdict = judge(FoundRoom("room", age, owner_alive=alive, has_marker=marker), DAY)
    assert verdict.remove is removed
    assert why in verdict.why


def test_w5_a_time_to_live_of_zero_removes_whatever_has_no_marker() -> None:
    assert judge(FoundRoom("room", 0.0, owner_alive=False, has_marker=False), 0.0).remove
