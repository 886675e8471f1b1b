"""Step 15 of an attempt: its outcome goes to the workflow engine, and is read back (R2)."""

from __future__ import annotations

from collections.abc import Callable

from perago.attempt.progress import AttemptProgress
from perago.ports import Broker
from perago.protocol import events
from perago.protocol.outcome import Outcome
from perago.protocol.values import Attempt, Phase


def report(
    attempt: Attempt,
    outcome: Outcome,
    broker: Broker,
    progress: AttemptProgress,
    lost: Callable[[], bool] = lambda: False,
) -> bool:
    """Report an outcome, and tell whether it was taken; one that was not wanted is logged."""
    progress.ignore_log_failures()
    with progress.phase(Phase.REPORT):
        # The result of an attempt that is known to be lost is not sent: a rerun has its task id.
        accepted = not lost() and broker.report(attempt, outcome)
    if not accepted:
        lost_completion(outcome, progress)
    return accepted


def lost_completion(outcome: Outcome, progress: AttemptProgress) -> None:
    """Log it (R2): the engine drops the result of a task that is over, and says 200."""
    progress.ignore_log_failures()
    progress.event(events.CompletionLost(outcome.status, outcome.output))
