"""After a publish call whose answer was lost: what does the target say? (P6, P11)

Under ``head`` and ``lineage`` the call is never sent again; the head is polled until it is ours
or the safety margin is over. A head that has not moved proves nothing: the call may still land.
Under ``hard`` the server refuses what comes too late, so a call may be sent again (K3).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from perago.protocol.publication import Merge, Relocate, Write, is_intent
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
    """Another writer moved the target; ours is not there."""

    head: str


@dataclass(frozen=True, slots=True)
class HalfReplaced:
    """Our intent to replace is the head: the second half is due (K3)."""

    intent: str


Settlement = Landed | StillUnknown | HalfReplaced | Lost


def settle(decision: Write, head: Commit, execution_id: str) -> Settlement:
    """Read the target's head as the answer that was lost."""
    if isinstance(decision, Merge):
        mine = head.metadata.get("perago.execution_id") == execution_id
        if mine and head.parents == (decision.head,):
            return Landed(head.id)
    else:
        wanted = wanted_by(decision)
        if head.id == wanted:
            return Landed(head.id)
        if is_intent(head) and head.parents == (decision.head, wanted):
            return HalfReplaced(head.id)
    if head.id == decision.head:
        return StillUnknown()
    return Lost(head.id)


def wanted_by(decision: Write) -> str:
    """Return the commit that a decision wants to see, or to see merged, on the branch."""
    return decision.to if isinstance(decision, Relocate) else decision.source


class PublishAnswer(Enum):
    """How a call under ``hard`` ended, when it did not simply succeed."""

    UNKNOWN = "no answer, or one that says nothing"
    RACE = "refused because something else happened first"
    REFUSED = "refused for good"


class Next(Enum):
    """What follows."""

    DONE = "it landed"
    SEND = "send the merge again, with the same expected head"
    RESET = "move the branch from the intent to what it intends"
    LOST = "fail: another writer has the branch"
    GIVE_UP = "fail with the answer"


def proceed(state: Settlement, answer: PublishAnswer, *, resetting: bool) -> Next:
    """Choose what to do after a call under ``hard``, by what the target shows (P6, P8, K3).

    ``resetting`` tells that the intent has landed and its second half was asked for.
    """
    match state:
        case Landed():
            return Next.DONE
        case HalfReplaced():
            # A reset to "<branch>^2" that comes twice finds no second parent and changes nothing.
            return Next.GIVE_UP if resetting and answer is PublishAnswer.REFUSED else Next.RESET
        case StillUnknown() if not resetting:
            # The head is the expected one and yet it was refused: another hook, or no permission.
            return Next.SEND if answer is PublishAnswer.UNKNOWN else Next.GIVE_UP
        case _:
            refused = answer is PublishAnswer.REFUSED and not resetting
            return Next.GIVE_UP if refused else Next.LOST
