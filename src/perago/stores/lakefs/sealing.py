"""The commit of a staging branch, settled when its answer is lost (S4, P6).

A commit of a million objects takes minutes, longer than a proxy or a patient client waits. The
branch is private, so its head tells whether the commit landed, and sending it again is safe: what
comes second finds nothing to commit.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from perago.errors import OutcomeUnknownError, StoreError, StoreUnavailableError
from perago.ports import Patience
from perago.protocol.values import Commit
from perago.stores.lakefs.client import CALL_SECONDS, Ask

QUICK_TRIES = 3
QUICK_SECONDS = 5.0
"""An answer that is lost sooner says that the server cannot be reached, not that it is at work."""
PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class StagingBranch:
    """The staging branch: how it is committed, how its head is read, whose head is ours."""

    commit: Callable[[Ask], Commit]
    head: Callable[[float], Commit]
    execution_id: str | None

    def landed(self, seconds: float) -> Commit | None:
        """Return the head if it is the commit of this execution; None too when that is unknown."""
        try:
            head = self.head(seconds)
        except StoreUnavailableError:
            return None
        mine = self.execution_id and head.metadata.get("perago.execution_id") == self.execution_id
        return head if mine else None


def seal(branch: StagingBranch, ask: Ask, patience: Patience) -> Commit:
    """Commit, and wait for it as long as the attempt has time."""
    until = time.monotonic() + patience.seconds
    doubt: OutcomeUnknownError | None = None
    seconds, quick = min(CALL_SECONDS, patience.seconds), 0
    while True:
        patience.check()
        started = time.monotonic()
        try:
            return branch.commit(replace(ask, timeout_seconds=seconds))
        except StoreError as error:
            unknown = isinstance(error, OutcomeUnknownError)
            doubt = doubt or (error if isinstance(error, OutcomeUnknownError) else None)
            if found := branch.landed(CALL_SECONDS):
                return found
            if doubt is None:
                raise
        now = time.monotonic()
        quick = quick + 1 if now - started < QUICK_SECONDS else 0
        if not unknown or quick >= QUICK_TRIES or now >= until:
            # Refused while an earlier one is at work, out of reach, or out of time: only look.
            return _watch(branch, doubt, patience, until if not unknown else now)
        seconds = min(2 * seconds, max(until - now, QUICK_SECONDS))
        time.sleep(PAUSE_SECONDS)


def _watch(
    branch: StagingBranch, doubt: OutcomeUnknownError, patience: Patience, until: float
) -> Commit:
    """Read the head until the commit shows or the margin is over; never send again."""
    until = max(until, time.monotonic() + patience.margin_seconds)
    pause = PAUSE_SECONDS
    while True:
        patience.check()
        left = max(until - time.monotonic(), PAUSE_SECONDS)
        if found := branch.landed(min(left, CALL_SECONDS)):
            return found
        if time.monotonic() >= until:
            raise doubt
        time.sleep(min(pause, left))
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
