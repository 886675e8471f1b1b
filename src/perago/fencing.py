"""The attempt fence: whether the attempt still counts, and which head it may act on (F1 to F3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from perago.ahead import Ahead, when_wanted
from perago.errors import BrokerUnavailableError, PublishFenceError
from perago.ports import Broker, Clock, Store
from perago.protocol.fence import assert_current_attempt_snapshot
from perago.protocol.kinds import FenceKind
from perago.protocol.values import Attempt, Commit, WorkspaceInput
from perago.publishing import POLL_SECONDS, RESTART

TRIES = 3


@dataclass(frozen=True, slots=True)
class AttemptFence:
    """Asked before anything is staged, and again before anything is published."""

    attempt: Attempt
    store: Store
    broker: Broker
    clock: Clock
    ahead: Ahead = when_wanted

    def check(self) -> None:
        """Ask the broker a few times; if it cannot say, the answer is no (F2)."""
        for tries_left in reversed(range(TRIES)):
            try:
                fresh = self.broker.current(self.attempt)
            except BrokerUnavailableError:
                if not tries_left:
                    raise
                self.clock.sleep(POLL_SECONDS)
            else:
                assert_current_attempt_snapshot(self.attempt, fresh)
                return

    def first(self, workspace: WorkspaceInput, fence: FenceKind) -> Callable[[], Commit]:
        """Read H for the first time: ahead, where that may be, for it only has to be before."""
        target = workspace.repository, workspace.branch
        if fence == "hard":  # K3: it completes what a dead replacement left, so it is a write.
            return lambda: self.store.finished_head(*target)
        return self.ahead(lambda: self.store.head(*target))

    def head(self, workspace: WorkspaceInput, first: Callable[[], Commit]) -> Commit:
        """Have H, ask the broker, read H again: only then is H known to precede the answer (F3)."""
        before = first()
        self.check()
        after = self.store.head(workspace.repository, workspace.branch)
        if before.id != after.id:
            raise moved(before.id, after.id)
        return after


def moved(expected: str, found: str) -> PublishFenceError:
    """Build the refusal of a branch that does not hold still."""
    return PublishFenceError(
        f"branch moved from {expected} to {found} while the attempt was publishing",
        remedy=RESTART,
    )
