"""Refusing points that no attempt has."""

from __future__ import annotations

from perago.errors import UsageError
from perago.protocol.points import POINTS


def checked_point(point: str) -> str:
    """Refuse a point that no attempt ever reaches: the test would prove nothing."""
    if point not in POINTS:
        raise UsageError(f"there is no point {point!r}", remedy=f"use one of {', '.join(POINTS)}")
    return point
