"""Who hears what happens in a worker: log files, metrics, Conductor's own task log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from perago.protocol.values import Claim


class Watcher(Protocol):
    """Called by the supervisor's one thread, in order; must neither raise nor wait."""

    def event(self, claim: Claim, worker_id: str, name: str, facts: Mapping[str, object]) -> None:
        """Hear a point of an attempt's journal (see :mod:`perago.protocol.points`)."""
        ...

    def output(self, claim: Claim | None, worker_id: str, stream: str, line: str) -> None:
        """Hear a line that an executor printed; without a claim, between attempts."""
        ...

    def worker(self, name: str, facts: Mapping[str, object]) -> None:
        """Hear what the worker itself does: started, polled, executor died, draining, ended."""
        ...

    def close(self, timeout_seconds: float) -> None:
        """Write what is still to be written, and stop."""
        ...
