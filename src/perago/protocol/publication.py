"""The publish fence, one pure function (section 8, rules P and N).

It looks at A, H, the parents of H, C or none, and what the broker says of the task that made H.
``decide`` returns what to do as a value; ``Store.apply`` is the only thing that carries it out.

    ====================  =======================  =========================
    state                 change                   no change
    ====================  =======================  =========================
    H is A                P1 Merge: A -> M         N1 Keep A
    parent of H is A      P2 Replace: A -> C       N2 Relocate back to A
    anything else         P3 Refuse                N3 Refuse
    ====================  =======================  =========================

Only an abandoned publication is replaced or taken back: P2a, in :mod:`perago.protocol.replacement`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from perago.protocol import lineage
from perago.protocol.kinds import FenceKind
from perago.protocol.replacement import Standings, object_to_replacing
from perago.protocol.values import Attempt, Commit


@dataclass(frozen=True, slots=True)
class Keep:
    """Write nothing; the output ref is the head as it is."""

    head: str


@dataclass(frozen=True, slots=True)
class Merge:
    """Squash-merge ``source`` onto ``head``: one new commit whose only parent is ``head``."""

    head: str
    source: str


@dataclass(frozen=True, slots=True)
class Replace:
    """Move the branch from the abandoned ``head`` to ``source``: A -> C, never A -> H -> C."""

    head: str
    source: str


@dataclass(frozen=True, slots=True)
class Relocate:
    """Move the branch from the abandoned ``head`` back to ``to``; nothing was changed."""

    head: str
    to: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """Write nothing and fail: this state cannot be explained (G2)."""

    rule: str
    reason: str
    remedy: str = ""
    """What to do instead, where it is not what every fence recommends (P9)."""


Write = Merge | Replace | Relocate
Decision = Keep | Write | Refuse


@dataclass(frozen=True, slots=True)
class Situation:
    """All a fence may look at. ``range_to_input`` is H..A by first parents, without A.

    Only ``lineage`` reads the range; only ``lineage`` and ``hard`` take permission from metadata
    (S5). ``standings`` is what the broker said of the tasks whose work would leave the branch.
    """

    input_ref: str
    head: Commit
    staged: str | None
    attempt: Attempt
    range_to_input: Sequence[Commit] | lineage.Broken = ()
    standings: Standings = field(default_factory=dict)
    submits: frozenset[str] | None = None
    """Where a person does the attempt: the executions of it that were theirs (Q11)."""

    @property
    def at_stake(self) -> Sequence[Commit]:
        """Return the publications that a write would replace, take back or supersede."""
        if self.head.id == self.input_ref:
            return ()
        known = not isinstance(self.range_to_input, lineage.Broken) and self.range_to_input
        return known or (self.head,)


def decide(fence: FenceKind, situation: Situation) -> Decision:
    """Choose what this attempt may do to the target branch."""
    if len(situation.head.parents) > 1 and is_intent(situation.head):
        return Refuse(
            "K6", f"head {situation.head.id} is an unfinished replacement by another fence kind"
        )
    decision = _decide_lineage(situation) if fence == "lineage" else _decide_head(situation)
    if isinstance(decision, Refuse):
        return decision
    if fence == "hard" and isinstance(decision, Replace | Relocate):
        decision = _only_own_step(situation, decision)
    if situation.submits is not None and not isinstance(decision, Refuse):
        decision = _only_own_submits(situation, situation.submits, decision)
    return _only_abandoned(situation, decision)


def is_intent(commit: Commit) -> bool:
    """Return whether a commit is the first half of a conditional replacement (K3)."""
    return commit.metadata.get("perago.intent") == "replace"


def _decide_head(situation: Situation) -> Decision:
    head, source = situation.head, situation.staged
    if head.id == situation.input_ref:
        return Keep(head.id) if source is None else Merge(head.id, source)
    if head.parent == situation.input_ref:
        if source is None:
            return Relocate(head.id, situation.input_ref)
        return Replace(head.id, source)
    return Refuse(
        "N3" if source is None else "P3",
        f"target head is {head.id} with parent {head.parent}; "
        f"expected {situation.input_ref} or a direct child of it",
    )


def _only_abandoned(situation: Situation, decision: Decision) -> Decision:
    """Let nothing leave the branch, nor be superseded on it, that the broker calls done (P2a)."""
    found = object_to_replacing(situation.at_stake, situation.attempt, situation.standings)
    if found is None or isinstance(decision, Refuse):
        return decision
    return Refuse("P2a", found.reason, found.remedy)


def _only_own_step(situation: Situation, decision: Replace | Relocate) -> Decision:
    """Let ``hard`` replace only what another attempt of the same step published (K3)."""
    said = situation.head.metadata
    mine = situation.attempt
    if said.get("perago.logical_task_key") != mine.logical_task_key:
        return Refuse(
            "K3", f"head {decision.head} was not published by step {mine.logical_task_key}"
        )
    own = situation.submits or frozenset()
    if _of_attempt(said, mine) and said.get("perago.execution_id") not in own:
        return Refuse("K3", f"head {decision.head} was published by a twin of this same attempt")
    return decision


def _only_own_submits(
    situation: Situation, own: frozenset[str], decision: Keep | Write
) -> Decision:
    """Let a person replace what they published for this very task, never another's (Q11)."""
    for commit in situation.at_stake:
        said = commit.metadata
        if _of_attempt(said, situation.attempt) and said.get("perago.execution_id") not in own:
            who = said.get("perago.person") or "another person"
            return Refuse(
                "Q11",
                f"head {commit.id} was published by {who}, from another directory, for this task",
                "submit from there again, or reject the step: it is then given out anew",
            )
    return decision


def _of_attempt(said: Mapping[str, str], attempt: Attempt) -> bool:
    """Return whether a commit says that this attempt made it."""
    named = said.get("perago.task_id"), said.get("perago.retry_count")
    return named == (attempt.task_id, str(attempt.retry_count))


def _decide_lineage(situation: Situation) -> Decision:
    """Publish on a head that only this step has advanced (K2)."""
    head, source = situation.head, situation.staged
    problem = lineage.refuse_range(
        situation.range_to_input, situation.attempt.logical_task_key, situation.input_ref
    )
    if problem:
        return Refuse("K2", problem)
    if source is not None:
        return Merge(head.id, source)
    if head.id == situation.input_ref:
        return Keep(head.id)
    return Relocate(head.id, situation.input_ref)


def refuse_visible(decision: Write, published: str, head: Commit) -> str | None:
    """Return why what is visible after the call is not what was decided (P5), or None."""
    if head.id != published:
        return f"target head is {head.id} instead of {published}"
    if isinstance(decision, Merge) and head.parents != (decision.head,):
        return f"published commit {head.id} has parents {head.parents}, not {decision.head} alone"
    if isinstance(decision, Replace) and head.id != decision.source:
        return f"target head is {head.id} instead of the staged {decision.source}"
    if isinstance(decision, Relocate) and head.id != decision.to:
        return f"target head is {head.id} instead of the input {decision.to}"
    return None
