"""The last word on a posting: what the engine did with the report (R2)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from perago.errors import LedgerUnavailableError
from perago.ports import Broker, Clock, Ledger
from perago.protocol.adoption import Completion
from perago.protocol.outcome import Outcome
from perago.protocol.values import Attempt, AttemptSnapshot, Claim


@dataclass(frozen=True, slots=True)
class SettlingBroker:
    """A broker that also tells the ledger how a report was taken, once that was read back."""

    inner: Broker
    ledger: Ledger
    execution_id: str
    clock: Clock

    def current(self, attempt: Attempt) -> AttemptSnapshot:
        """Ask the engine."""
        return self.inner.current(attempt)

    def standing(self, task_id: str) -> str | None:
        """Ask the engine."""
        return self.inner.standing(task_id)

    def report(self, attempt: Attempt, outcome: Outcome) -> bool:
        """Report, then record; what cannot be recorded stays unknown, which is no lie (G2)."""
        accepted = self.inner.report(attempt, outcome)
        if not outcome.completed or outcome.fence is not None:  # Others have no posting.
            with suppress(LedgerUnavailableError):
                self.ledger.settle(self.execution_id, _told(outcome, accepted), self.clock.now())
        return accepted


def settling(broker: Broker, ledger: Ledger | None, claim: Claim, clock: Clock) -> Broker:
    """Have reports of one execution recorded, if there is a ledger."""
    if ledger is None:
        return broker
    return SettlingBroker(broker, ledger, claim.execution_id, clock)


def _told(outcome: Outcome, accepted: bool) -> Completion:  # noqa: FBT001 - the answer of a port
    if not accepted:
        return Completion.DROPPED
    return Completion.ACCEPTED if outcome.completed else Completion.FAILED
