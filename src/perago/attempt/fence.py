"""The attempt fence: whether the attempt still counts, and which head it may act on (F1 to F3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from perago.attempt.publisher import POLL_SECONDS
from perago.errors import RESTART, BrokerUnavailableError, PublishFenceError
from perago.ports import Broker, Clock, Store
from perago.prefetch import Prefetch, when_needed
from perago.protocol.fence import assert_current_attempt_snapshot
from perago.protocol.kinds import FenceKind
from perago.protocol.replacement import Standings
from perago.protocol.values import Attempt, Commit, WorkspaceInput

TRIES = 3

T = TypeVar("T")


def no_task(_: Commit) -> Iterable[str]:
    """Ask about no other task: nothing will leave the branch."""
    return ()


@dataclass(frozen=True, slots=True)
class FencedHead:
    """H as it stood around the broker's answers, and what the broker said of H's tasks (P2a)."""

    commit: Commit
    standings: Standings


@dataclass(frozen=True, slots=True)
class AttemptFence:
    """Asked before anything is staged, and again before anything is published."""

    attempt: Attempt
    store: Store
    broker: Broker
    clock: Clock
    prefetch: Prefetch = when_needed

    def check(self) -> None:
        """Ask whether the attempt is current; if nobody can say, the answer is no (F2)."""
        fresh = self._asked(lambda: self.broker.current(self.attempt))
        assert_current_attempt_snapshot(self.attempt, fresh)

    def first(self, workspace: WorkspaceInput, fence: FenceKind) -> Callable[[], Commit]:
        """Read H for the first time: ahead, where that may be, for it only has to be before."""
        target = workspace.repository, workspace.branch
        if fence == "hard":  # K3: it completes what a dead replacement left, so it is a write.
            return lambda: self.store.finished_head(*target)
        return self.prefetch(lambda: self.store.head(*target))

    def head(
        self,
        workspace: WorkspaceInput,
        first: Callable[[], Commit],
        others: Callable[[Commit], Iterable[str]] = no_task,
    ) -> FencedHead:
        """Have H, ask the broker, read H again: only then is H known to precede the answer (F3).

        ``others`` names the tasks whose publications the attempt may be about to replace: how
        they stand is asked in the same place (P2a).
        """
        before = first()
        self.check()
        ask = self.broker.standing
        standings = {task: self._asked(partial(ask, task)) for task in others(before)}
        after = self.store.head(workspace.repository, workspace.branch)
        if before.id != after.id:
            raise moved(before.id, after.id)
        return FencedHead(after, standings)

    def _asked(self, ask: Callable[[], T]) -> T:
        """Ask the broker a few times."""
        for _ in range(TRIES - 1):
            try:
                return ask()
            except BrokerUnavailableError:
                self.clock.sleep(POLL_SECONDS)
        return ask()


def moved(expected: str, found: str) -> PublishFenceError:
    """Build the refusal of a branch that does not hold still."""
    return PublishFenceError(
        f"branch moved from {expected} to {found} while the attempt was publishing",
        remedy=RESTART,
    )
