"""What becomes of each execution: finished, died, lost, killed; used by one thread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from perago.process.reports import WatchedExecutors
from perago.protocol.event_format import read
from perago.protocol.outcome import Outcome
from perago.protocol.values import Claim, Staging
from perago.protocol.worker_events import WorkerEvent
from perago.worker.event_fanout import EventFanout
from perago.worker.leasing import LeaseKeeper
from perago.worker.post_mortem import DeadExecution, PostMortem
from perago.worker.reporter import Reporter
from perago.worker.runs import LEFT, TRACED, RunningExecution, WorkerTally

CANCEL_SECONDS: Final = 5.0
"""How long a lost attempt may take to give up by itself."""
NEVER_SEEN: Final = 60.0
_NEWEST_SHARE: Final = 0.3


class Executions:
    """The executions under way, and what has been counted of those that ended."""

    def __init__(
        self,
        pool: WatchedExecutors,
        keeper: LeaseKeeper,
        reporter: Reporter,
        post_mortem: PostMortem,
        fanout: EventFanout,
    ) -> None:
        self.tally = WorkerTally()
        self.usual_seconds = NEVER_SEEN
        """How long an attempt takes these days."""
        self._pool = pool
        self._keeper = keeper
        self._reporter = reporter
        self._post_mortem = post_mortem
        self._fanout = fanout
        self._clock = fanout.clock
        self._runs: dict[str, RunningExecution] = {}
        self._unconfirmed: dict[str, RunningExecution] = {}

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[RunningExecution]:
        return iter(list(self._runs.values()))

    def get(self, execution_id: str) -> RunningExecution | None:
        """Return one that is under way."""
        return self._runs.get(execution_id)

    @property
    def working(self) -> list[RunningExecution]:
        """Return those that have an executor."""
        return [run for run in self._runs.values() if not run.reporting]

    @property
    def ending(self) -> int:
        """Count those whose executor is free in a moment."""
        return sum(run.decided and not run.reporting for run in self._runs.values())

    @property
    def reporting(self) -> int:
        """Count those of which only the report is left."""
        return sum(run.reporting for run in self._runs.values())

    # --- the usual life ------------------------------------------------------------------------

    def begin(self, claim: Claim, executor_id: str, worker_id: str) -> None:
        """Give a claim to an idle executor."""
        self._runs[claim.execution_id] = RunningExecution(claim, worker_id, self._clock.now())
        self._keeper.named(claim.execution_id, worker_id)
        self._pool.submit(claim, executor_id)

    def heard(self, execution_id: str, body: Mapping[str, object]) -> None:
        """Follow an execution's journal."""
        run = self._runs.get(execution_id) or self._unconfirmed.get(execution_id)
        if run is None:
            return
        name = str(body.get("event", ""))
        facts = {key: value for key, value in body.items() if key not in {"event", "execution_id"}}
        if name == TRACED:
            run.trace = {key: str(value) for key, value in facts.items()}
            return
        if name == LEFT:
            run.left = Staging(str(facts.get("repository")), str(facts.get("branch")))
            return
        event = read(name, facts)
        run.state = run.state.after(event, self._clock.now())
        self._fanout.event(run.claim, run.worker_id, event)

    def finished(self, execution_id: str, outcome: Outcome) -> None:
        """Have the outcome of an execution reported; its executor is free for the next one."""
        run = self._runs.get(execution_id)
        if run is None:
            return
        if not run.decided and not run.lost:
            # It broke out of its own error handling, and may not have cleaned up.
            self._bury(run, outcome.reason or "executor: the attempt came to no decision")
            return
        if run.leaves_directory:
            self._post_mortem.sweep_soon()
        took = self._clock.now() - run.since
        if self.usual_seconds == NEVER_SEEN:
            self.usual_seconds = took
        self.usual_seconds += _NEWEST_SHARE * (took - self.usual_seconds)
        run.reporting = True
        self._reporter.report(run, outcome, lambda: self._keeper.release(execution_id))

    def reported(self, execution_id: str, outcome: Outcome) -> None:
        """Take note of an execution of which nothing is left to do but to read it back."""
        run = self._runs.pop(execution_id, None)
        self._keeper.let_go(execution_id)
        if run is not None and run.unconfirmed:
            self._unconfirmed[execution_id] = run
        if run is not None and not run.lost:
            self.tally.completed += outcome.completed
            self.tally.failed += not outcome.completed

    def confirmed(self, run: RunningExecution) -> None:
        """Forget an execution whose result was read back; it may not even count as reported."""
        run.unconfirmed = False
        self._unconfirmed.pop(run.claim.execution_id, None)

    # --- other ends ----------------------------------------------------------------------------

    def died(self, execution_id: str, how: str) -> None:
        """Report for an executor that is gone (R3)."""
        if run := self._runs.get(execution_id):
            reason = f"executor died in {run.state.last_phase or 'its first moment'}: {how}"
            self._bury(run, "" if run.lost else reason)

    def lost(self, execution_id: str, why: str) -> None:
        """Stop an unwanted attempt (W4); one that reports hears it from the broker."""
        self._keeper.let_go(execution_id)
        run = self._runs.get(execution_id)
        if run is not None and not run.reporting and not run.lost:
            self.tally.lost += 1
            run.kill_at = self._clock.monotonic() + CANCEL_SECONDS
            facts = {"worker_id": run.worker_id, "execution_id": execution_id, "why": why}
            self._fanout.worker(WorkerEvent.ATTEMPT_LOST, facts)
            self._pool.cancel(execution_id)

    def end_overdue(self) -> None:
        """End lost attempts that did not give up."""
        now = self._clock.monotonic()
        for run in self.working:
            if run.kill_at is not None and now >= run.kill_at:
                self.kill(run, "the attempt was lost and did not give up")

    def kill(self, run: RunningExecution, why: str) -> None:
        """End an execution with its executor; one that is lost is not reported."""
        execution_id = run.claim.execution_id
        facts = {"worker_id": run.worker_id, "execution_id": execution_id, "why": why}
        self._fanout.worker(WorkerEvent.EXECUTOR_KILLED, facts)
        self._pool.kill(execution_id)
        self._bury(run, "" if run.lost else why)

    def _bury(self, run: RunningExecution, reason: str) -> None:
        """Have the rest done for it; its lease is kept until it is reported."""
        execution_id = run.claim.execution_id
        self._runs.pop(execution_id, None)
        self.tally.failed += bool(reason)
        self._post_mortem.settle(
            DeadExecution(run.claim, run.worker_id, reason),
            lambda: self._keeper.release(execution_id),
        )
