"""Log files of one supervisor: JSON lines, each with the identity of its attempt (W8).

Phases are not a line each: the line ``attempt ended`` carries the seconds of all of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from perago.observe.logfiles import LogFiles
from perago.observe.running import Attempts, Ended
from perago.observe.secrets import Secrets
from perago.ports import Clock
from perago.protocol.events import (
    Event,
    GuardAsked,
    MetricRecorded,
    Moved,
    OutcomeDecided,
    PhaseBegan,
    PhaseEnded,
    Severity,
)
from perago.protocol.values import Claim
from perago.protocol.worker_events import WorkerEvent

_SILENT: Final = (PhaseBegan, PhaseEnded, MetricRecorded, Moved, OutcomeDecided)
"""Metrics have their own place; phases and the outcome are in the last line of the attempt."""


class JsonLog:
    """A watcher that writes log files."""

    def __init__(self, files: LogFiles, clock: Clock, secrets: Secrets, instance_id: str) -> None:
        self._files = files
        self._clock = clock
        self._secrets = secrets
        self._instance = instance_id
        self._attempts = Attempts()

    def event(self, claim: Claim, worker_id: str, event: Event) -> None:
        """Write a point that says more than that time passed."""
        ended = self._attempts.event(claim, worker_id, event, self._clock.monotonic())
        guard_holds = isinstance(event, GuardAsked) and not event.violation
        if not isinstance(event, _SILENT) and not guard_holds:
            self._write(event.SEVERITY, event.title, identity(claim, worker_id), event.facts)
        self._ended(ended)

    def output(self, claim: Claim | None, worker_id: str, stream: str, line: str) -> None:
        """Write a line that was printed."""
        who = identity(claim, worker_id) if claim else {"worker_id": worker_id}
        self._write(Severity.INFO, "output", who, {"stream": stream, "text": line})

    def worker(self, event: WorkerEvent, facts: Mapping[str, object]) -> None:
        """Write what the worker did."""
        if not event.routine:
            self._write(event.severity, f"worker {event}", {}, facts)
        self._ended(self._attempts.worker(event, facts, self._clock.monotonic()))

    def close(self, timeout_seconds: float) -> None:  # noqa: ARG002 - nothing is kept back
        """Close the file."""
        self._files.close()

    def _ended(self, attempts: list[Ended]) -> None:
        for ended in attempts:
            run = ended.run
            facts: dict[str, object] = {
                "status": ended.status,
                "reason": ended.reason,
                "seconds": round(ended.seconds, 6),
                "phases": run.state.seconds,
                **({} if ended.completed else {"failed_in": ended.failed_in}),
                **run.state.summary,
            }
            who = identity(run.claim, run.worker_id)
            level = Severity.INFO if ended.completed else Severity.ERROR
            self._write(level, "attempt ended", who, facts)

    def _write(
        self, level: Severity, name: str, who: Mapping[str, object], facts: Mapping[str, object]
    ) -> None:
        record = {
            "at": timestamp(self._clock.now()),
            "level": level,
            "event": name,
            "instance_id": self._instance,
            **who,
            # The result is the author's, and may be large or confidential: never in a log.
            "facts": self._secrets.plain({k: v for k, v in facts.items() if k != "output"}),
        }
        self._files.write(json.dumps(record, ensure_ascii=False, default=str))


def identity(claim: Claim, worker_id: str) -> dict[str, object]:
    """Name an attempt and its execution."""
    attempt = claim.attempt
    return {
        "workflow_instance_id": attempt.workflow_instance_id,
        "task_id": attempt.task_id,
        "retry_count": attempt.retry_count,
        "execution_id": claim.execution_id,
        "reference_task_name": attempt.reference_task_name,
        "task_def_name": attempt.task_def_name,
        "worker_id": worker_id,
    }


def timestamp(at: float) -> str:
    """Write a moment in UTC, sortable."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
