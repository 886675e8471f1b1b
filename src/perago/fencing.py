"""The attempt fence: whether the attempt still counts, and which head it may act on (F1 to F3)."""

from __future__ import annotations

from dataclasses import dataclass

from perago.errors import BrokerUnavailableError, PublishFenceError
from perago.ports import Broker, Clock, Store
from perago.protocol.fence import assert_current_attempt_snapshot
from perago.protocol.values import Attempt, Commit, FenceKind, WorkspaceInput
from perago.publishing import POLL_SECONDS, RESTART

TRIES = 3


@dataclass(frozen=True, slots=True)
class AttemptFence:
    """Asked before anything is staged, and again before anything is published."""

    attempt: Attempt
    store: Store
    broker: Broker
    clock: Clock

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

    def head(self, workspace: WorkspaceInput, fence: FenceKind) -> Commit:
        """Read H, ask the broker, read H again: only then is H known to precede the answer (F3)."""
        target = workspace.repository, workspace.branch
        hard = fence == "hard"  # K3: what a dead replacement left is completed first.
        first = self.store.finished_head(*target) if hard else self.store.head(*target)
        self.check()
        second = self.store.head(*target)
        if first.id != second.id:
            raise moved(first.id, second.id)
        return second


def moved(expected: str, found: str) -> PublishFenceError:
    """Build the refusal of a branch that does not hold still."""
    return PublishFenceError(
        f"branch moved from {expected} to {found} while the attempt was publishing",
        remedy=RESTART,
    )
