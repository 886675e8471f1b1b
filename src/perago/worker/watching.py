"""Who hears what happens in a worker: log files, metrics, Conductor's own task log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from perago.protocol.events import Event
from perago.protocol.values import Claim
from perago.protocol.worker_events import WorkerEvent


class Watcher(Protocol):
    """Called by the supervisor's one thread, in order; must neither raise nor wait."""

    def event(self, claim: Claim, worker_id: str, event: Event) -> None:
        """Hear an event of an attempt's journal."""

    def output(self, claim: Claim | None, worker_id: str, stream: str, line: str) -> None:
        """Hear a line that an executor printed; without a claim, between attempts."""

    def worker(self, event: WorkerEvent, facts: Mapping[str, object]) -> None:
        """Hear what the worker itself does."""

    def close(self, timeout_seconds: float) -> None:
        """Write what is still to be written, and stop."""
