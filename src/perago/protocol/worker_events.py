"""What a worker says of itself, with the severity of each event."""

from __future__ import annotations

from enum import StrEnum

from perago.protocol.events import Severity


class WorkerEvent(StrEnum):
    """Something that a supervisor did, or met."""

    STARTED = "started"
    DRAINING = "draining"
    ENDED = "ended"
    START_FAILED = "start failed"
    EXECUTOR_STARTED = "executor started"
    EXECUTOR_RECYCLED = "executor recycled"
    EXECUTOR_DIED = "executor died"
    EXECUTOR_KILLED = "executor killed"
    CRASH_LOOP = "crash loop"
    POLLED = "polled"
    POLL_FAILED = "poll failed"
    POLLER_REPLACED = "poller replaced"
    HEARTBEAT_FAILED = "heartbeat failed"
    ATTEMPT_LOST = "attempt lost"
    REPORT_FAILED = "report failed"
    REPORTED_FOR_DEAD = "reported for the dead"
    REPORT_NOT_WANTED = "report not wanted"
    CLAIM_REFUSED = "claim refused"
    GIVEN_BACK = "given back"
    NOT_GIVEN_BACK = "not given back"
    SWEPT = "swept"
    DIRECTORY_LEFT = "failed to clean attempt-local workspace"
    BRANCH_LEFT = "failed to clean staging workspace"
    BACKGROUND_FAILED = "failed"

    @property
    def severity(self) -> Severity:
        """How much it matters."""
        if self in _ERRORS:
            return Severity.ERROR
        return Severity.WARNING if self in _WARNINGS else Severity.INFO

    @property
    def routine(self) -> bool:
        """Whether a worker does it many times a minute while all is well."""
        return self is WorkerEvent.POLLED

    @property
    def ends_attempt(self) -> bool:
        """Whether the attempt of that executor will not come to its own end."""
        return self in {WorkerEvent.EXECUTOR_DIED, WorkerEvent.EXECUTOR_KILLED}


_ERRORS = frozenset({WorkerEvent.START_FAILED, WorkerEvent.CRASH_LOOP})
_WARNINGS = frozenset(
    {
        *(WorkerEvent.EXECUTOR_DIED, WorkerEvent.EXECUTOR_KILLED, WorkerEvent.ATTEMPT_LOST),
        *(WorkerEvent.POLL_FAILED, WorkerEvent.POLLER_REPLACED, WorkerEvent.HEARTBEAT_FAILED),
        *(WorkerEvent.REPORT_FAILED, WorkerEvent.CLAIM_REFUSED, WorkerEvent.NOT_GIVEN_BACK),
        *(WorkerEvent.DIRECTORY_LEFT, WorkerEvent.BRANCH_LEFT, WorkerEvent.BACKGROUND_FAILED),
    }
)
