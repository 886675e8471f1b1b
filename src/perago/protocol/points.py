"""The named points of an attempt: every event of its journal, in order."""

from __future__ import annotations

from perago.protocol.values import Phase

_INSIDE = {
    Phase.DOWNLOAD: ("downloaded",),
    Phase.DIFF: ("changed",),
    Phase.STAGE: ("branch created", "uploaded", "committed"),
    Phase.PUBLISH: ("decision", "applied", "published"),
}


def _points() -> tuple[str, ...]:
    found = ["claimed"]
    for phase in Phase:
        found += [f"before {phase}", *_INSIDE.get(phase, ()), f"after {phase}"]
    return tuple(found)


POINTS = _points()
AMID = tuple(f"during {phase}" for phase in (Phase.DOWNLOAD, Phase.STAGE))
"""Places inside a transfer, when its first bytes have moved; no event tells of them."""
