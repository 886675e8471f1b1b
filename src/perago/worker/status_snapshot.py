"""The supervisor in plain values: what ``perago status`` shows and a readiness probe asks."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from perago.process.reports import ExecutorState
from perago.worker.executions import Executions
from perago.worker.polling import Poller


@dataclass(frozen=True, slots=True)
class StatusSnapshot:
    """One look at everything; ``wall`` added to a monotonic time makes it a time of day."""

    draining: bool
    executors: Sequence[ExecutorState]
    worker_id: Callable[[int], str]
    bytes_of: Callable[[str], int | None]
    executions: Executions
    poller: Poller | None
    now: float
    wall: float
    closed_until: float

    @property
    def not_ready(self) -> str:
        """Return why no claim would be taken now; empty when one would."""
        if self.draining:
            return "draining"
        if self.now < self.closed_until:
            return "executors die one after the other; polling continues later"
        if not any(seen.ready for seen in self.executors):
            return "no executor is ready"
        if self.poller is None or self.poller.hung:
            return "a poll does not come back"
        if self.poller.problem:
            return f"polling fails: {self.poller.problem}"
        answered = self.poller.answered_at or len(self.executions)
        return "" if answered else "no poll has been answered yet"

    def as_json(self) -> dict[str, Any]:
        """Return what changes while a worker runs."""
        poller = self.poller
        answered = poller.answered_at if poller else 0.0
        return {
            "state": "draining" if self.draining else "running",
            "pid": os.getpid(),
            "ready": not self.not_ready,
            "why_not_ready": self.not_ready,
            "running": [run.as_json() for run in self.executions],
            "executors": [self._executor(seen) for seen in self.executors],
            "counts": self.executions.tally.as_json(),
            "polls": {
                "count": poller.polls if poller else 0,
                "answered_at": round(answered + self.wall, 3) if answered else None,
                "problem": poller.problem if poller else "",
            },
            "paused_until": (
                round(self.closed_until + self.wall, 3) if self.now < self.closed_until else None
            ),
        }

    def _executor(self, seen: ExecutorState) -> dict[str, Any]:
        return {
            "worker_id": self.worker_id(seen.number),
            "pid": seen.pid,
            "ready": seen.ready,
            "execution_id": seen.execution_id,
            "started_at": round(seen.born + self.wall, 3),
            "attempts": seen.attempts,
            "bytes": self.bytes_of(seen.executor_id),
        }
