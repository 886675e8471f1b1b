"""The external ledger: what it records of an execution, and what may be adopted from it (K5).

A publication is adopted when its own completion was lost: the current attempt then completes with
the commit that is there, and with the result that belongs to it. Everything else declines, and the
attempt goes on as if there were no ledger.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from hashlib import sha256

from perago.protocol.kinds import FenceKind
from perago.protocol.values import Attempt

ADOPT = "adopt"
INTEND = "intend"
"""What an execution has decided before it knows the head it may act on."""
_PUBLISHING = frozenset({"merge", "replace", ADOPT})


class Completion(StrEnum):
    """What became of the report; without one it is unknown (G2)."""

    ACCEPTED = "accepted"
    """The engine has the task as completed, with this output."""
    DROPPED = "dropped"
    """The engine did not want it any more (R2)."""
    FAILED = "failed"
    """A failure was reported, and taken."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What two executions must share for one to complete with the publication of the other."""

    logical_task_key: str
    repository: str
    branch: str
    input_ref: str
    params: str
    """A digest: params may hold what must not be written down (V8)."""
    task: str
    prefix: str
    fence: FenceKind
    code: str = ""
    """A digest of the file that defines the task; empty when it could not be read."""


@dataclass(frozen=True, slots=True)
class Posting:
    """One execution in the ledger; without ``ref`` it is unknown whether its write landed (G2)."""

    execution_id: str
    attempt: Attempt
    terms: Terms
    decision: str
    head: str
    staged: str | None
    output: Mapping[str, object]
    """The output without its workspace: what belongs to the published content."""
    intended_at: float
    ref: str | None = None
    landed_at: float | None = None
    completion: Completion | None = None
    settled_at: float | None = None

    @property
    def state(self) -> str:
        """Say in a few words how far it is known to have come."""
        if self.decision == "refuse":
            return "refused"
        if self.completion is not None:
            return {
                Completion.ACCEPTED: "completed",
                Completion.DROPPED: "completion lost",
                Completion.FAILED: "failed",
            }[self.completion]
        return "outcome unknown" if self.ref is None else "completion unknown"


@dataclass(frozen=True, slots=True)
class Adopt:
    """Complete with this publication; write nothing to the store."""

    posting: Posting


@dataclass(frozen=True, slots=True)
class Decline:
    """Adopt nothing and go on by the ordinary rules."""

    reason: str


def params_digest(logical_task_key: str, input_ref: str, params: Mapping[str, object]) -> str:
    """Digest params as they were given; the same params of another step look different."""
    text = json.dumps(params, sort_keys=True, separators=(",", ":"), default=str)
    return sha256(f"{logical_task_key}\n{input_ref}\n{text}".encode()).hexdigest()


def judge(
    terms: Terms, attempt: Attempt, head: str, postings: Sequence[Posting]
) -> Adopt | Decline:
    """Choose the publication to adopt among all that is recorded of a step, oldest first.

    ``head`` was read around the attempt fence (F3).
    """
    if head == terms.input_ref:
        return Decline("the branch is at the input: there is nothing to adopt")
    accepted = next((p for p in postings if p.completion is Completion.ACCEPTED), None)
    if accepted is not None:
        return Decline(f"the step was completed before, with {accepted.ref}: it is to run again")
    problems = []
    for posting in postings:
        problem = refuse(terms, attempt, head, posting) or refuse_others(posting, postings)
        if problem is None:
            return Adopt(posting)
        problems.append(f"execution {posting.execution_id}: {problem}")
    return Decline("; ".join(problems) or "nothing is recorded of this step")


def refuse_others(posting: Posting, postings: Sequence[Posting]) -> str | None:
    """Return who could still take a publication away, or None: adopting writes nothing (V3).

    Who replaces it has seen it while his attempt was current (F3). Attempts that were over before
    the publishing one began have not.
    """
    for other in postings:
        open_end = other.ref is None and other.decision != "refuse"
        later = other.attempt.retry_count >= posting.attempt.retry_count
        if open_end and later and other.execution_id != posting.execution_id:
            return f"execution {other.execution_id} may still replace it"
    return None


def refuse(terms: Terms, attempt: Attempt, head: str, posting: Posting) -> str | None:
    """Return why this posting is not what the attempt would publish, or None."""
    if posting.ref is None:
        return "it is not known whether its publication landed"
    if posting.decision not in _PUBLISHING:
        return f"it decided to {posting.decision}, which publishes nothing"
    if posting.ref != head:
        return f"it published {posting.ref}, and the branch is at {head}"
    for field in fields(Terms):
        recorded, wanted = getattr(posting.terms, field.name), getattr(terms, field.name)
        if recorded != wanted and not (field.name == "code" and not recorded):
            return f"it had another {field.name.replace('_', ' ')}"
    again = (posting.attempt.task_id, posting.attempt.retry_count) == (
        attempt.task_id,
        attempt.retry_count,
    )
    if again and posting.attempt.started_at != attempt.started_at:
        return "the same attempt was handed out anew: it is meant to run again"
    return None
