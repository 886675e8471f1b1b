"""After a publish call whose answer was lost: what does the target say? (P6, P11)

Under ``head`` and ``lineage`` the call is never sent again; the head is polled until it is ours
or the safety margin is over. A head that has not moved proves nothing: the call may still land.
"""

from __future__ import annotations

from dataclasses import dataclass

from perago.protocol.publication import Merge, Relocate, Write
from perago.protocol.values import Commit


@dataclass(frozen=True, slots=True)
class Landed:
    """The call was applied; ``ref`` is what it published."""

    ref: str


@dataclass(frozen=True, slots=True)
class StillUnknown:
    """The target looks as before: ask again while the margin lasts."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Somebody else moved the target; ours is not there."""

    head: str


Settlement = Landed | StillUnknown | Lost


def settle(decision: Write, head: Commit, execution_id: str) -> Settlement:
    """Read the target's head as the answer that was lost."""
    if isinstance(decision, Merge):
        mine = head.metadata.get("perago.execution_id") == execution_id
        if mine and head.parents == (decision.head,):
            return Landed(head.id)
    else:
        wanted = decision.to if isinstance(decision, Relocate) else decision.source
        if head.id == wanted:
            return Landed(head.id)
    if head.id == decision.head:
        return StillUnknown()
    return Lost(head.id)
