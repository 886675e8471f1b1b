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
from perago.protocol.values import Claim

_LEVELS: Final = {
    **dict.fromkeys(("warning", "outcome unknown", "lost completion"), "warning"),
    **dict.fromkeys(("traceback",), "error"),
}
_WORKER_WARNINGS: Final = ("failed", "died", "killed", "lost", "stuck", "refused", "dropped")
_SILENT: Final = frozenset({"metric", "progress", "decided"})
"""Metrics have their own place; the decision of the attempt is in its last line."""
_ROUTINE: Final = frozenset({"polled", "heartbeat", "slots"})
"""What a worker does many times a second while all is well."""


class JsonLog:
    """A watcher that writes log files."""

    def __init__(self, files: LogFiles, clock: Clock, secrets: Secrets, instance_id: str) -> None:
        self._files = files
        self._clock = clock
        self._secrets = secrets
        self._instance = instance_id
        self._attempts = Attempts()

    def event(self, claim: Claim, worker_id: str, name: str, facts: Mapping[str, object]) -> None:
        """Write a point that says more than that time passed."""
        ended = self._attempts.event(claim, worker_id, name, facts, self._clock.monotonic())
        passing = name.startswith(("before ", "after ")) or name in _SILENT
        guard_holds = name == "guard" and not facts.get("violation")
        if not passing and not guard_holds:
            self._write(_LEVELS.get(name, "info"), name, identity(claim, worker_id), facts)
        self._ended(ended)

    def output(self, claim: Claim | None, worker_id: str, stream: str, line: str) -> None:
        """Write a line that was printed."""
        who = identity(claim, worker_id) if claim else {"worker_id": worker_id}
        self._write("info", "output", who, {"stream": stream, "text": line})

    def worker(self, name: str, facts: Mapping[str, object]) -> None:
        """Write what the worker did."""
        if name not in _ROUTINE:
            bad = any(word in name for word in _WORKER_WARNINGS)
            self._write("warning" if bad else "info", f"worker {name}", {}, facts)
        self._ended(self._attempts.worker(name, facts, self._clock.monotonic()))

    def close(self, timeout_seconds: float) -> None:  # noqa: ARG002 - nothing is kept back
        """Close the file."""
        self._files.close()

    def _ended(self, attempts: list[Ended]) -> None:
        for ended in attempts:
            run = ended.run
            facts: dict[str, object] = {
                "status": run.status,
                "reason": run.reason,
                "seconds": round(ended.seconds, 6),
                "phases": run.seconds,
                **({} if ended.completed else {"failed_in": run.failed_in}),
                **run.facts,
            }
            who = identity(run.claim, run.worker_id)
            self._write("info" if ended.completed else "error", "attempt ended", who, facts)

    def _write(
        self, level: str, name: str, who: Mapping[str, object], facts: Mapping[str, object]
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
