"""All watchers as one, and the few problems that ``perago status`` shows."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from perago.ports import Clock
from perago.protocol.events import Event, Severity
from perago.protocol.outcome import describe
from perago.protocol.values import Claim
from perago.protocol.worker_events import WorkerEvent
from perago.redaction import hidden_facts, hide
from perago.worker.watching import Watcher

_LAST_PROBLEMS: Final = 10


class EventFanout:
    """Passes on what the supervisor's one thread says; remembers the last problems."""

    def __init__(self, watchers: Sequence[Watcher], clock: Clock) -> None:
        self._watchers = watchers
        self.clock = clock
        self.problems: deque[dict[str, Any]] = deque(maxlen=_LAST_PROBLEMS)

    def event(self, claim: Claim, worker_id: str, event: Event) -> None:
        self._all(lambda watcher: watcher.event(claim, worker_id, event))

    def output(self, claim: Claim | None, worker_id: str, stream: str, line: str) -> None:
        line = hide(line)
        self._all(lambda watcher: watcher.output(claim, worker_id, stream, line))

    def worker(self, event: WorkerEvent, facts: Mapping[str, object]) -> None:
        facts = hidden_facts(facts)
        if event.severity is not Severity.INFO:
            why = facts.get("why") or facts.get("how") or ""
            who = facts.get("worker_id") or facts.get("task_id") or facts.get("task") or ""
            what = " ".join(str(part) for part in (event, who) if part)
            self.problems.append({"at": self.clock.now(), "what": what, "why": str(why)})
        self._all(lambda watcher: watcher.worker(event, facts))

    def close(self, timeout_seconds: float) -> None:
        self._all(lambda watcher: watcher.close(timeout_seconds))

    def _all(self, tell: Callable[[Watcher], None]) -> None:
        """Tell every watcher; one that fails must end neither the others nor the worker."""
        for watcher in self._watchers:
            try:
                tell(watcher)
            except Exception as error:  # noqa: BLE001 - what it was told may be an author's
                what = f"{type(watcher).__name__} failed"
                if not any(known["what"] == what for known in self.problems):
                    why = hide(describe(error))
                    self.problems.append({"at": self.clock.now(), "what": what, "why": why})
                    sys.stderr.write(f"warning: {what}: {why}\n")
