"""What is to be done for an execution that did not live to do it itself (R3, W5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from perago.errors import PeragoError, TaskInputError
from perago.ports import Broker, Clock
from perago.protocol import names
from perago.protocol.job import parse_workspace
from perago.protocol.outcome import Outcome, shorten
from perago.protocol.values import Claim, Staging, Status
from perago.protocol.worker_events import WorkerEvent
from perago.redaction import hide
from perago.worker.background_pool import BackgroundPool
from perago.workspace.sweeper import remove_attempt_dir_of, sweep

_THREADS: Final = 2
_MOST_SWEEPS: Final = 2
_LAST_SWEEP_SECONDS: Final = 1.0
REMOVAL_SECONDS: Final = 5.0
"""How long a report waits for the removal of a directory; the rest is removed after it."""
Note = Callable[[WorkerEvent, Mapping[str, object]], None]


@dataclass(frozen=True, slots=True)
class CleanupConfig:
    """Where executions leave things, and who can remove them."""

    root: Path
    ttl_seconds: float
    drop: Callable[[Staging], None] | None
    """Removes a staging branch; None when no task has a workspace."""
    broker: Callable[[Claim, str], Broker]
    """Makes the broker for one claim and one worker id."""
    reason_limit: int
    in_progress: Callable[[str], bool | None] | None = None
    """Asks whether the task of an id is in progress; None: it is not known."""
    alone: bool = True
    """Whether an execution that was ended is really over; a thread may still use its things."""


@dataclass(frozen=True, slots=True)
class DeadExecution:
    """An execution that is over; without a reason its attempt was lost, and nothing is reported."""

    claim: Claim
    worker_id: str
    reason: str


class PostMortem:
    """Cleans up and reports, away from the supervisor's own thread.

    Directories of a hundred thousand files take long to remove: what does not wait for that, a
    claim that is given back above all, is done by others.
    """

    def __init__(self, cleanup: CleanupConfig, clock: Clock, note: Note) -> None:
        self._cleanup = cleanup
        self._clock = clock
        self._note = note

        def failed(error: Exception) -> None:
            note(WorkerEvent.BACKGROUND_FAILED, {"why": str(error)})

        self._removals = BackgroundPool("post-mortem", _THREADS, failed)
        self._actions = BackgroundPool("actions", _THREADS, failed)
        self._sweeps = BackgroundPool("sweep", 1, failed)

    def settle(self, dead: DeadExecution, release: Callable[[], None]) -> None:
        """Remove what it left, release its lease, report it (steps 13 to 15 of the lifecycle)."""
        self._removals.do(lambda: self._settle(dead, release))

    def do(self, action: Callable[[], None]) -> None:
        """Do something else that must not keep the supervisor waiting."""
        self._actions.do(action)

    def sweep(self) -> None:
        """Remove the directories of owners that are gone."""
        cleanup = self._cleanup
        ask = cleanup.in_progress

        def in_progress(_: str, marker: Mapping[str, object]) -> bool | None:
            return ask(str(marker.get("task_id", ""))) if ask is not None and marker else None

        swept = sweep(cleanup.root, cleanup.ttl_seconds, self._clock, in_progress=in_progress)
        if gone := [str(found.path) for found in swept if found.removed]:
            self._note(WorkerEvent.SWEPT, {"directories": gone})
        for found in swept:
            if found.failed:
                self._note(WorkerEvent.DIRECTORY_LEFT, {"why": found.why})

    def sweep_soon(self) -> None:
        """Have the directories of owners that are gone removed."""
        # One may be at it, and have passed what is meant now; a second that waits will not.
        if self._sweeps.left < _MOST_SWEEPS:
            self._sweeps.do(self.sweep)

    @property
    def left(self) -> int:
        """Count what is not done yet and has to be; the next start goes on with a sweep."""
        return self._removals.left + self._actions.left

    def close(self, timeout_seconds: float) -> bool:
        """Finish; False when something is still under way."""
        deadline = self._clock.monotonic() + timeout_seconds
        pools = (self._actions, self._removals)
        done = [pool.close(max(0.0, deadline - self._clock.monotonic())) for pool in pools]
        self._sweeps.close(min(timeout_seconds, _LAST_SWEEP_SECONDS))
        return all(done)

    def _settle(self, dead: DeadExecution, release: Callable[[], None]) -> None:
        removed = True
        try:
            if self._cleanup.alone:
                deadline = self._clock.monotonic() + REMOVAL_SECONDS
                removed = self._remove_attempt_dir(dead, lambda: self._clock.monotonic() > deadline)
                self._drop_staging(dead)
        finally:
            release()
            if dead.reason:
                self._report(dead)
            if not removed:
                self._sweeps.do(lambda: self._finish_removal(dead))

    def _remove_attempt_dir(self, dead: DeadExecution, out_of_time: Callable[[], bool]) -> bool:
        """Remove its directory; False when the time was up."""
        attempt, execution_id = dead.claim.attempt, dead.claim.execution_id
        try:
            remove_attempt_dir_of(self._cleanup.root, attempt.task_id, execution_id, out_of_time)
        except PeragoError as error:
            if out_of_time():
                return False
            self._note(WorkerEvent.DIRECTORY_LEFT, {"why": str(error)})
        return True

    def _finish_removal(self, dead: DeadExecution) -> None:
        self._remove_attempt_dir(dead, lambda: False)

    def _drop_staging(self, dead: DeadExecution) -> None:
        if self._cleanup.drop is None:
            return
        with suppress(TaskInputError):  # Without a valid workspace there never was a branch.
            workspace = parse_workspace(dead.claim.input.get("workspace"))
            branch = names.staging_branch(dead.claim.attempt, dead.claim.execution_id)
            try:
                self._cleanup.drop(Staging(workspace.repository, branch))
            except PeragoError as error:
                self._note(WorkerEvent.BRANCH_LEFT, {"why": str(error)})

    def _report(self, dead: DeadExecution) -> None:
        reason = shorten(hide(dead.reason), self._cleanup.reason_limit)
        attempt = dead.claim.attempt
        facts = {"task_id": attempt.task_id, "execution_id": dead.claim.execution_id}
        try:
            broker = self._cleanup.broker(dead.claim, dead.worker_id)
            accepted = broker.report(attempt, Outcome(Status.FAILED, reason=reason))
        except PeragoError as error:
            self._note(WorkerEvent.REPORT_FAILED, {**facts, "why": str(error)})
        else:
            wanted, not_wanted = WorkerEvent.REPORTED_FOR_DEAD, WorkerEvent.REPORT_NOT_WANTED
            self._note(wanted if accepted else not_wanted, facts)
