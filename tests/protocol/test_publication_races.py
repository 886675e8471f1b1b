"""Two publishers of one branch, stepped through every interleaving of their last five steps.

The decisions are the real ones; the broker and the branch are models of a few lines. F3 orders the
steps {read head, fence, read head, publish, report}; the naive order asks first and reads once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import Literal

import pytest

from perago.errors import StaleAttemptError
from perago.protocol.fence import assert_current_attempt_snapshot
from perago.protocol.kinds import FenceKind
from perago.protocol.publication import Keep, Merge, Refuse, Relocate, Situation, decide
from perago.protocol.values import Attempt, AttemptSnapshot, Commit, Status
from tests.protocol.identities import EARLIER, ME, says

Step = Literal["read", "fence", "read again", "publish", "report"]
Relation = Literal["retry", "twins", "strangers"]
F3: tuple[Step, ...] = ("read", "fence", "read again", "publish", "report")
NAIVE: tuple[Step, ...] = ("fence", "read", "publish", "report")
ABANDONED = Commit("H0", ("A",), metadata=says(replace(EARLIER, task_id="task-0"), "execution-0"))


@dataclass
class Branch:
    """A target branch; ``compare_and_set`` is what fence ``hard`` has and ``head`` lacks."""

    head: str
    compare_and_set: bool
    commits: dict[str, Commit] = field(default_factory=dict)

    def reachable(self) -> list[str]:
        found = [self.head]
        while parents := self.commits[found[-1]].parents:
            found.append(parents[0])
        return found


@dataclass
class Broker:
    """Conductor's side: who is current, and whose completion was accepted."""

    relation: Relation
    started: set[int] = field(default_factory=set)
    accepted: dict[int, str] = field(default_factory=dict)

    def status(self, who: int) -> Status:
        """A retry exists only after the first attempt timed out, never after it completed."""
        if self.relation == "strangers":
            return Status.COMPLETED if who in self.accepted else Status.IN_PROGRESS
        if self.relation == "twins":
            return Status.COMPLETED if self.accepted else Status.IN_PROGRESS
        if who == 0 and 1 in self.started and 0 not in self.accepted:
            return Status.TIMED_OUT
        if who in self.accepted:
            return Status.COMPLETED
        return Status.CANCELED if who == 1 and 0 in self.accepted else Status.IN_PROGRESS


@dataclass
class Publisher:
    """One execution about to publish."""

    who: int
    attempt: Attempt
    fence: FenceKind
    changed: bool
    seen: Commit | None = None
    published: str | None = None
    gave_up: bool = False

    def take(self, step: Step, branch: Branch, broker: Broker) -> None:
        """Do one step; a failed attempt does nothing any more."""
        broker.started.add(self.who)
        if self.gave_up:
            return
        match step:
            case "read":
                self.seen = branch.commits[branch.head]
            case "fence":
                self._ask(broker)
            case "read again":
                self.gave_up = self.seen != branch.commits[branch.head]
            case "publish":
                self._publish(branch)
            case "report":
                if broker.status(self.who) is Status.IN_PROGRESS and self.published:
                    broker.accepted[self.who] = self.published

    def _ask(self, broker: Broker) -> None:
        mine = self.attempt
        fresh = AttemptSnapshot(
            mine.workflow_instance_id, mine.task_id, mine.retry_count, broker.status(self.who)
        )
        try:
            assert_current_attempt_snapshot(mine, fresh)
        except StaleAttemptError:
            self.gave_up = True

    def _publish(self, branch: Branch) -> None:
        assert self.seen is not None
        staged = f"C{self.who}" if self.changed else None
        decision = decide(self.fence, Situation("A", self.seen, staged, self.attempt))
        if isinstance(decision, Refuse):
            self.gave_up = True
            return
        if isinstance(decision, Keep):
            self.published = decision.head
            return
        if branch.compare_and_set and branch.head != decision.head:
            self.gave_up = True
            return
        if isinstance(decision, Relocate):
            self.published = decision.to
        else:
            # A soft store merges onto whatever is there; a hard reset does not look at all.
            parent = branch.head if isinstance(decision, Merge) else "A"
            self.published = f"P{self.who}"
            said = says(self.attempt, f"execution-{self.who}")
            branch.commits[self.published] = Commit(self.published, (parent,), metadata=said)
        branch.head = self.published


@dataclass(frozen=True)
class End:
    """How one interleaving ended."""

    order: tuple[int, ...]
    accepted: dict[int, str]
    line: list[str]

    @property
    def lost(self) -> bool:
        """V3: a completion that was accepted is no longer reachable from the target."""
        return any(ref not in self.line for ref in self.accepted.values())

    @property
    def stacked(self) -> bool:
        """V1: more than A, or A -> X."""
        return self.line.index("A") > 1


ATTEMPTS: dict[Relation, tuple[Attempt, Attempt]] = {
    "retry": (EARLIER, ME),
    "twins": (ME, ME),
    "strangers": (ME, replace(ME, workflow_instance_id="workflow-2", task_id="task-7")),
}


def interleavings(first: Sequence[Step], second: Sequence[Step]) -> Iterator[tuple[int, ...]]:
    total = len(first) + len(second)
    for chosen in combinations(range(total), len(first)):
        yield tuple(0 if place in chosen else 1 for place in range(total))


def run(
    steps: Sequence[Step],
    fence: FenceKind,
    relation: Relation,
    *,
    abandoned: bool,
    changed: tuple[bool, bool] = (True, True),
) -> list[End]:
    """Step two publishers through every interleaving, from a fresh branch each time."""
    ends: list[End] = []
    for order in interleavings(steps, steps):
        branch = Branch("H0" if abandoned else "A", compare_and_set=fence == "hard")
        branch.commits |= {"A": Commit("A", ()), "H0": ABANDONED}
        broker = Broker(relation)
        pair = [Publisher(i, ATTEMPTS[relation][i], fence, changed[i]) for i in (0, 1)]
        todo = [iter(steps), iter(steps)]
        for who in order:
            pair[who].take(next(todo[who]), branch, broker)
        ends.append(End(order, dict(broker.accepted), branch.reachable()))
    return ends


def test_two_publishers_of_five_steps_have_252_interleavings() -> None:
    assert sum(1 for _ in interleavings(F3, F3)) == 252
    assert sum(1 for _ in interleavings(NAIVE, NAIVE)) == 70


@pytest.mark.parametrize("relation", ["retry", "twins", "strangers"])
@pytest.mark.parametrize("abandoned", [False, True], ids=["head is A", "head is abandoned"])
@pytest.mark.parametrize("changed", list(product((True, False), repeat=2)), ids=str)
def test_f3_k3_v3_with_compare_and_set_no_accepted_completion_is_lost(
    relation: Relation, abandoned: bool, changed: tuple[bool, bool]
) -> None:
    ends = run(F3, "hard", relation, abandoned=abandoned, changed=changed)
    assert len(ends) == 252
    assert not [end.order for end in ends if end.lost], "V3"
    assert not [end.order for end in ends if end.stacked], "V1"


@pytest.mark.parametrize("relation", ["retry", "twins"])
def test_v5_under_hard_somebody_always_completes_when_nobody_is_wedged(relation: Relation) -> None:
    """Whatever the order, the retry completes, or the first attempt had already completed."""
    ends = run(F3, "hard", relation, abandoned=False)
    stuck = [end for end in ends if not end.accepted]
    # The only losers: a stale attempt moved the head while the retry was between its two reads
    # and its act. The retry then fails closed and the next one meets A or a child of A.
    assert all(end.line in (["P0", "A"], ["P1", "A"]) for end in stuck)
    assert len(stuck) < len(ends) / 2


def test_f3_the_naive_order_loses_a_completion_when_the_retry_has_completed() -> None:
    """Fence first, then one read: a paused stale attempt replaces what its retry completed.

    Even a compare-and-set does not help: the head it compares with is the completed one.
    """
    fences: tuple[FenceKind, ...] = ("head", "hard")
    for fence in fences:
        ends = run(NAIVE, fence, "retry", abandoned=False)
        lost = [end for end in ends if end.lost]
        assert (0, 1, 1, 1, 1, 0, 0, 0) in [end.order for end in lost]
        assert all(end.accepted == {1: "P1"} and end.line == ["P0", "A"] for end in lost)


def test_f3_the_same_pause_is_harmless_in_the_order_of_the_specification() -> None:
    """The stale attempt sleeps right after its fence; its second read shows the other head."""
    ends = {end.order: end for end in run(F3, "head", "retry", abandoned=False)}
    paused = ends[0, 0, 1, 1, 1, 1, 1, 0, 0, 0]
    assert paused.accepted == {1: "P1"}
    assert paused.line == ["P1", "A"]


@pytest.mark.parametrize("abandoned", [False, True], ids=["head is A", "head is abandoned"])
def test_f3_under_head_only_a_pause_after_the_second_read_does_harm(abandoned: bool) -> None:
    """The window that remains without compare-and-set (F3, section 14), and nothing besides it."""
    ends = run(F3, "head", "retry", abandoned=abandoned)
    harmed = [end for end in ends if end.lost or end.stacked]
    assert harmed, "a soft fence is soft: this is documented, not hidden"
    for end in harmed:
        stale = [place for place, who in enumerate(end.order) if who == 0]
        retry = [place for place, who in enumerate(end.order) if who == 1]
        second_read, act = stale[2], stale[3]
        retry_acts_inside = second_read < retry[3] < act
        stale_acts_inside = retry[2] < act < retry[3]
        assert retry_acts_inside or stale_acts_inside, end
    lost = [end for end in harmed if end.lost]
    assert bool(lost) is abandoned, "a late merge stacks; a late hard reset destroys"


def test_section_14_head_lets_a_stranger_with_an_old_input_destroy_a_completion() -> None:
    """Why writers of one branch must be serial under ``head``; ``hard`` refuses the same case."""
    one_after_the_other = (0,) * 5 + (1,) * 5
    soft = {end.order: end for end in run(F3, "head", "strangers", abandoned=False)}
    hard = {end.order: end for end in run(F3, "hard", "strangers", abandoned=False)}
    assert soft[one_after_the_other].lost
    assert hard[one_after_the_other].accepted == {0: "P0"}
    assert hard[one_after_the_other].line == ["P0", "A"]
