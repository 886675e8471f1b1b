"""How often a lease is renewed, and how long a stopping worker waits (W4, W6)."""

from __future__ import annotations

from collections.abc import Iterable

SHARE = 3.0
"""A lease survives two lost heartbeats in a row."""
LEAST_SECONDS = 0.2
GRACE_SECONDS = 30.0


def beat_seconds(heartbeat_seconds: float, lease_seconds: float) -> float:
    """Say how long to wait between heartbeats; a lease of 0 never ends but is still looked at."""
    wanted = min(heartbeat_seconds, lease_seconds / SHARE) if lease_seconds else heartbeat_seconds
    return max(LEAST_SECONDS, wanted)


def drain_seconds(graces: Iterable[float], limit_seconds: float | None) -> float:
    """Say how long running attempts get: the longest of their graces, bounded by the operator."""
    wanted = max(graces, default=GRACE_SECONDS)
    return wanted if limit_seconds is None else min(wanted, limit_seconds)
