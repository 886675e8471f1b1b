"""Reports for executors that have gone on to the next claim (steps 13 and 15 of the lifecycle).

The supervisor keeps the lease until an attempt is reported, so it also reports: an executor never
waits for the engine to take a result, and one that dies afterwards takes no result with it. The
private branch goes the same way: it is no longer needed, and its removal takes a server's time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Final

from perago.attempt.progress import AttemptProgress
from perago.attempt.report import lost_completion, report
from perago.brokers.conductor.broker import Later
from perago.ports import Broker, Clock, Journal
from perago.protocol.outcome import Outcome, describe
from perago.protocol.values import Claim, Staging
from perago.worker.background_pool import BackgroundPool
from perago.worker.confirming import LATEST_SECONDS, Confirmations
from perago.worker.runs import RunningExecution

REPORTS_EACH: Final = 2
"""How many reports may be under way for each executor before it gets no new claim."""
_MOST_THREADS: Final = 8

Say = Callable[[dict[str, object]], None]


@dataclass(frozen=True, slots=True)
class Channels:
    """How a report leaves: to the engine, and to the journal of its attempt."""

    broker: Callable[[Claim, str, Later], Broker]
    """Makes the broker for one claim and one worker id, and says who asks later."""
    journal: Callable[[Claim, Say], AbstractContextManager[Journal]]
    """Opens the journal of one claim; what it hears is also said."""
    drop: Callable[[Staging], None] | None
    """Removes a staging branch; None when no task has a workspace."""


class Reporter:
    """A few threads that report; what happens comes back through ``heard`` and ``reported``."""

    def __init__(
        self,
        channels: Channels,
        clock: Clock,
        executors: int,
        heard: Callable[[str, Mapping[str, object]], None],
        reported: Callable[[str, Outcome, str], None],
        confirmed: Callable[[RunningExecution], None],
    ) -> None:
        self._channels = channels
        self._clock = clock
        self._heard = heard
        self._reported = reported
        self._confirmed = confirmed
        self._confirmations = Confirmations(clock)
        self.most = REPORTS_EACH * executors
        self._background = BackgroundPool("report", min(_MOST_THREADS, self.most), lambda _: None)

    def report(self, run: RunningExecution, outcome: Outcome, release: Callable[[], None]) -> None:
        """Have an outcome reported; the lease is let go of right before it is sent (W4)."""
        self._background.do(lambda: self._report(run, outcome, release))

    def quiet(self, quiet: bool) -> None:  # noqa: FBT001 - what the worker is
        """Say whether the worker has nothing to do."""
        self._confirmations.quiet(quiet)

    def close(self, timeout_seconds: float) -> bool:
        """Finish; False when a report is still under way. An engine that is gone confirms none."""
        done = self._background.close(timeout_seconds)
        return self._confirmations.close(min(timeout_seconds, LATEST_SECONDS)) and done

    def _report(self, run: RunningExecution, outcome: Outcome, release: Callable[[], None]) -> None:
        execution_id = run.claim.execution_id
        problem = ""

        def later(taken: Callable[[], bool]) -> None:
            run.unconfirmed = True
            self._confirmations.add(lambda: self._confirm(run, outcome, taken))

        try:
            broker = self._channels.broker(run.claim, run.worker_id, later)
            with self._progress(run) as progress:
                if (left := run.left) and (drop := self._channels.drop):
                    progress.quietly("failed to clean staging workspace", lambda: drop(left))
                release()
                report(run.claim.attempt, outcome, broker, progress, lambda: run.lost)
        except Exception as error:  # noqa: BLE001 - whatever it is, the lease must not be kept
            problem = describe(error)
        finally:
            self._reported(execution_id, outcome, problem)

    def _confirm(self, run: RunningExecution, outcome: Outcome, taken: Callable[[], bool]) -> None:
        """Read a result back; one that was dropped is logged as every other."""
        with suppress(Exception):  # It was sent; not to have read it back is no reason to die.
            if not taken():
                with self._progress(run) as progress:
                    lost_completion(outcome, progress)
        self._confirmed(run)

    @contextmanager
    def _progress(self, run: RunningExecution) -> Iterator[AttemptProgress]:
        """Go on with the journal of an execution."""
        claim = replace(run.claim, trace=run.trace or run.claim.trace)
        execution_id = claim.execution_id
        with self._channels.journal(claim, lambda said: self._heard(execution_id, said)) as to:
            progress = AttemptProgress(to, self._clock)
            progress.ignore_log_failures()  # What it speaks of was decided before.
            yield progress
