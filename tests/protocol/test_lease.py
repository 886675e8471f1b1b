from __future__ import annotations

import pytest

from perago.protocol.lease import GRACE_SECONDS, LEAST_SECONDS, beat_seconds, drain_seconds


@pytest.mark.parametrize(
    ("heartbeat", "lease", "every"),
    [(10, 600, 10), (10, 15, 5), (10, 0, 10), (1, 3, 1), (10, 0.3, LEAST_SECONDS)],
)
def test_w4_a_lease_survives_two_lost_heartbeats(
    heartbeat: float, lease: float, every: float
) -> None:
    assert beat_seconds(heartbeat, lease) == every


@pytest.mark.parametrize(
    ("graces", "limit", "seconds"),
    [
        ([], None, GRACE_SECONDS),
        ([5.0], None, 5.0),
        ([5.0, 60.0], None, 60.0),
        ([5.0, 60.0], 10.0, 10.0),
        ([], 2.0, 2.0),
        ([1.0], 2.0, 1.0),
    ],
)
def test_w6_the_longest_grace_holds_within_the_operators_limit(
    graces: list[float], limit: float | None, seconds: float
) -> None:
    assert drain_seconds(graces, limit) == seconds
