"""Conductor's own log of a task: what the attempt printed, its warnings and its traceback.

The server shows only the last few entries of a task, so lines are joined into as few as possible.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from perago.errors import PeragoError
from perago.observe.outbox import Outbox
from perago.observe.secrets import Secrets
from perago.protocol.events import Event, PhaseBegan, Traceback, Warned
from perago.protocol.printable import printable
from perago.protocol.values import Claim, Phase
from perago.protocol.worker_events import WorkerEvent

_MOST_LINES: Final = 20_000
_MOST_CHARACTERS: Final = 60_000
_EVERY_SECONDS: Final = 5.0
_TRIES: Final = 3
_PAUSE_SECONDS: Final = 0.5


class Logs(Protocol):
    """The one call of a Conductor client that is needed here."""

    def log(self, task_id: str, text: str) -> None:
        """Add text to the task's own log, or raise a ``PeragoError``."""


@dataclass(frozen=True, slots=True)
class _Line:
    task_id: str
    text: str


class TaskLog:
    """A watcher that ships lines from a thread of its own; never waits, never fails an attempt."""

    def __init__(
        self,
        client: Logs,
        secrets: Secrets,
        complain: Callable[[str], None] = lambda _: None,
        *,
        most_lines: int = _MOST_LINES,
        every_seconds: float = _EVERY_SECONDS,
    ) -> None:
        self._client = client
        self._secrets = secrets
        self._complain = complain
        self._missing: dict[str, int] = {}
        self._closing_at: float | None = None
        self.dropped = 0
        self._outbox: Outbox[_Line] = Outbox(
            "task-log", self._ship, most=most_lines, every_seconds=every_seconds
        )

    def event(self, claim: Claim, worker_id: str, event: Event) -> None:
        """Ship warnings and tracebacks; hurry when the attempt is about to end."""
        del worker_id
        match event:
            case Warned(text, why):
                self._put(claim, f"warning: {text}: {why}")
            case Traceback(text):
                for line in text.rstrip().splitlines():
                    self._put(claim, line)
            case PhaseBegan(Phase.REPORT):
                # Nothing an attempt prints comes later; all of it is to be there when it is over.
                self._outbox.hurry()

    def output(self, claim: Claim | None, worker_id: str, stream: str, line: str) -> None:
        """Ship what an attempt printed; what is printed between attempts belongs to none."""
        del worker_id, stream
        if claim is not None:
            self._put(claim, line)

    def worker(self, event: WorkerEvent, facts: Mapping[str, object]) -> None:
        """Nothing of the worker's own goes to a task."""

    def close(self, timeout_seconds: float) -> None:
        """Ship the rest."""
        self._closing_at = time.monotonic() + timeout_seconds
        if not self._outbox.close(timeout_seconds):
            self._complain("there was no time to send the last lines to Conductor's task log")
        if self.dropped:
            self._complain(f"{self.dropped} lines did not reach Conductor's task log")

    def _put(self, claim: Claim, text: str) -> None:
        task_id = claim.attempt.task_id
        if not self._outbox.put(_Line(task_id, _shown(self._secrets.hide(text)))):
            self._drop(task_id, 1)

    def _drop(self, task_id: str, count: int) -> None:
        if not self.dropped:
            self._complain("lines are lost on their way to Conductor's task log")
        self.dropped += count
        self._missing[task_id] = self._missing.get(task_id, 0) + count

    def _ship(self, lines: Sequence[_Line]) -> None:
        by_task: dict[str, list[str]] = {}
        for line in lines:
            by_task.setdefault(line.task_id, []).append(line.text)
        for task_id, texts in by_task.items():
            missing = self._missing.pop(task_id, 0)
            said = [f"[{missing} lines were lost here]"] if missing else []
            for entry in _entries(texts + said):
                if not self._send(task_id, "\n".join(entry)):
                    self._drop(task_id, len(entry))
        while len(self._missing) > _MOST_LINES:  # Of tasks that said nothing more.
            self._missing.pop(next(iter(self._missing)))

    def _send(self, task_id: str, text: str) -> bool:
        """Try a few times: a line too much is better than one too few."""
        for left in reversed(range(_TRIES)):
            try:
                self._client.log(task_id, text)
            except PeragoError:
                late = self._closing_at is not None and time.monotonic() >= self._closing_at
                if not left or late:
                    return False
                time.sleep(_PAUSE_SECONDS)
            else:
                return True
        return False


def _shown(line: str) -> str:
    """Keep a line one line, whatever is in it; tabs are what people print tables with."""
    return "\t".join(map(printable, line.split("\t")))


def _entries(lines: Sequence[str]) -> Iterator[list[str]]:
    """Join lines as long as an entry has room."""
    entry: list[str] = []
    size = 0
    for line in lines:
        if entry and size + len(line) > _MOST_CHARACTERS:
            yield entry
            entry, size = [], 0
        entry.append(line)
        size += len(line) + 1
    if entry:
        yield entry
