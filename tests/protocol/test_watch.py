"""What a watchdog does, over every combination that matters."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perago.protocol.watch import ExecutorSample, HealthVerdict, Limits, judge

LIMITS = Limits(stuck_after_seconds=10, start_seconds=60, max_bytes=1000, max_attempts=5)
IDLE = ExecutorSample(
    ready=True,
    busy=False,
    age_seconds=100,
    silent_seconds=100,
    attempts=1,
    bytes=100,
    first_bytes=100,
)
BUSY = replace(IDLE, busy=True, silent_seconds=1)


@pytest.mark.parametrize(
    ("sight", "limits", "verdict"),
    [
        (IDLE, LIMITS, HealthVerdict.KEEP),
        (BUSY, LIMITS, HealthVerdict.KEEP),
        (replace(IDLE, ready=False, age_seconds=59), LIMITS, HealthVerdict.KEEP),
        (replace(IDLE, ready=False, age_seconds=60), LIMITS, HealthVerdict.NEVER_READY),
        (replace(BUSY, silent_seconds=9.9), LIMITS, HealthVerdict.KEEP),
        (replace(BUSY, silent_seconds=10), LIMITS, HealthVerdict.STUCK),
        (replace(BUSY, bytes=1000), LIMITS, HealthVerdict.KEEP),
        (replace(BUSY, bytes=1001), LIMITS, HealthVerdict.TOO_BIG),
        (replace(BUSY, bytes=1001, silent_seconds=10), LIMITS, HealthVerdict.TOO_BIG),
        (replace(BUSY, bytes=None), LIMITS, HealthVerdict.KEEP),
        (replace(BUSY, bytes=1001), replace(LIMITS, max_bytes=None), HealthVerdict.KEEP),
        (replace(BUSY, attempts=5), LIMITS, HealthVerdict.KEEP),
        (replace(IDLE, attempts=5), LIMITS, HealthVerdict.RECYCLE),
        (replace(IDLE, attempts=5), replace(LIMITS, max_attempts=None), HealthVerdict.KEEP),
        (replace(IDLE, bytes=501), LIMITS, HealthVerdict.RECYCLE),
        (replace(IDLE, bytes=500), LIMITS, HealthVerdict.KEEP),
        (replace(IDLE, bytes=700, first_bytes=600), LIMITS, HealthVerdict.KEEP),
        (replace(IDLE, bytes=None), LIMITS, HealthVerdict.KEEP),
        (replace(IDLE, bytes=900, first_bytes=None), LIMITS, HealthVerdict.KEEP),
        (replace(IDLE, bytes=900), replace(LIMITS, max_bytes=None), HealthVerdict.KEEP),
    ],
)
def test_the_verdict(sight: ExecutorSample, limits: Limits, verdict: HealthVerdict) -> None:
    assert judge(sight, limits) is verdict
