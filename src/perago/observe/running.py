"""Attempts as a supervisor hears of them: which phase each is in, and how each one ended.

One worker id runs one attempt at a time; those before it may still be on their way to the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from perago.protocol.attempt_state import AttemptState
from perago.protocol.events import Claimed, Event
from perago.protocol.values import Claim, Status
from perago.protocol.worker_events import WorkerEvent

DIED: Final = "DIED"
"""The status of an attempt whose executor did not live to report it."""


@dataclass(slots=True)
class Running:
    """An attempt under way."""

    claim: Claim
    worker_id: str
    since: float
    state: AttemptState = field(default_factory=AttemptState)


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt that is over, from its claim to its report."""

    run: Running
    seconds: float
    status: str
    reason: str
    failed_in: str
    refused_by: str | None = None

    @property
    def completed(self) -> bool:
        """Return whether it succeeded."""
        return self.status == Status.COMPLETED


class Attempts:
    """The attempts of one supervisor; feed it every event, it says when one has ended."""

    def __init__(self) -> None:
        self._running: dict[str, Running] = {}

    @property
    def running(self) -> list[Running]:
        """Return those under way; may be asked from any thread."""
        return list(self._running.values())

    def event(self, claim: Claim, worker_id: str, event: Event, now: float) -> list[Ended]:
        """Take one event of an attempt's journal."""
        ended = []
        run = self._running.get(claim.execution_id)
        if run is None:
            if not isinstance(event, Claimed):
                return []  # The tail of one that was ended already.
            ended = [
                self._died(other, now, "nothing more is known of it")
                for other in self.running
                if other.worker_id == worker_id and other.state.outcome is None
            ]
            run = self._running[claim.execution_id] = Running(claim, worker_id, now)
        run.state = run.state.after(event, now)
        if run.state.reported:
            ended.append(self._reported(run, now))
        return ended

    def worker(self, event: WorkerEvent, facts: Mapping[str, object], now: float) -> list[Ended]:
        """Take one event of the worker; some end an attempt."""
        if not event.ends_attempt:
            return []
        execution_id, worker_id = facts.get("execution_id"), facts.get("worker_id")
        return [
            self._died(run, now, str(facts.get("how") or facts.get("why") or event))
            for run in self.running
            if run.claim.execution_id == execution_id
            or (run.worker_id == worker_id and run.state.outcome is None)
        ]

    def _died(self, run: Running, now: float, reason: str) -> Ended:
        self._running.pop(run.claim.execution_id, None)
        return Ended(run, now - run.since, DIED, reason, run.state.phase)

    def _reported(self, run: Running, now: float) -> Ended:
        self._running.pop(run.claim.execution_id, None)
        took, decided = now - run.since, run.state.outcome
        if decided is None:
            return Ended(run, took, "", "", run.state.failed_in)
        failed_in = "" if run.state.completed else run.state.failed_in
        return Ended(run, took, decided.status, decided.reason, failed_in, decided.refused_by)
