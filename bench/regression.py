"""Whether a ratio has fallen since it was recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

FALL = 0.3


def fallen(recorded: Mapping[str, Any], measured: Mapping[str, Any]) -> Iterator[str]:
    """Compare the ratios that both know; one that is 30 % worse is a finding.

    What was counted has nothing to be compared with on another machine: it is held to its target.
    """
    for name, before in recorded.items():
        now = measured.get(name)
        if now is None:
            continue
        if now.get("counted"):
            if not now["holds"]:
                yield f"{name}: {now['value']:g}, {now['kind']} {now['target']:g} is allowed"
            continue
        # Of the best times where both have them: what else a machine does can only add to a time.
        figure = "best" if "best" in before and "best" in now else "value"
        old, new = float(before[figure]), float(now[figure])
        better, worse = (new, old) if before["kind"] == "at least" else (old, new)
        if better < worse * (1 - FALL):
            yield f"{name}: {new:g}, it was {old:g}"
