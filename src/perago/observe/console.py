"""What a person sees of ``perago start``: one line per thing that matters."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Final, TextIO

from perago.observe.outbox import Outbox
from perago.observe.running import Attempts, Ended
from perago.observe.secrets import Secrets
from perago.ports import Clock
from perago.protocol.events import Event, Severity
from perago.protocol.printable import printable
from perago.protocol.values import Claim
from perago.protocol.worker_events import WorkerEvent

_COLOURS: Final = {"good": "32", "bad": "31", "warn": "33", "dim": "2", "": ""}
_MOST_LINES: Final = 10_000
_EVERY_SECONDS: Final = 0.05


class ConsoleLog:
    """A watcher that prints; coloured on a terminal, plain on a pipe.

    A reader that stops (Ctrl-S, a full pipe) must not stop the worker: a thread of its own
    prints, and lines that find no room are dropped and counted.
    """

    def __init__(self, clock: Clock, secrets: Secrets, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._clock = clock
        self._secrets = secrets
        self._coloured = self._stream.isatty() and not os.environ.get("NO_COLOR")
        self._attempts = Attempts()
        self._told_of = 0
        self._outbox: Outbox[str] = Outbox(
            "console", self._print, most=_MOST_LINES, every_seconds=_EVERY_SECONDS
        )

    def event(self, claim: Claim, worker_id: str, event: Event) -> None:
        """Print warnings at once, and every attempt at its end."""
        ended = self._attempts.event(claim, worker_id, event, self._clock.monotonic())
        if event.SEVERITY is Severity.WARNING:
            facts = event.facts
            text = f"{event.title}: {facts['text']}" if "text" in facts else event.title
            why = f" ({facts['why']})" if facts.get("why") else ""
            self._say(worker_id, f"{_step(claim)}  {text}{why}", "warn")
        self._ended(ended)

    def output(self, claim: Claim | None, worker_id: str, stream: str, line: str) -> None:
        """Print a line as it was printed, with who printed it."""
        del stream
        self._say(worker_id, f"{_step(claim) if claim else '-'} | {line}", "dim")

    def worker(self, event: WorkerEvent, facts: Mapping[str, object]) -> None:
        """Print what the worker did, unless it does it all the time."""
        if not event.routine and event is not WorkerEvent.EXECUTOR_STARTED:
            text = ", ".join(f"{key} {value}" for key, value in facts.items() if value != "")
            bad = event.severity is not Severity.INFO
            self._say("worker", f"{event}{': ' if text else ''}{text}", "bad" if bad else "")
        self._ended(self._attempts.worker(event, facts, self._clock.monotonic()))

    def close(self, timeout_seconds: float) -> None:
        """Print the rest."""
        self._outbox.close(timeout_seconds)

    def _ended(self, attempts: list[Ended]) -> None:
        for ended in attempts:
            run = ended.run
            text = f"{_step(run.claim)}  {ended.status}  {ended.seconds:.3f} s"
            if not ended.completed:
                self._say(run.worker_id, f"{text}  {ended.reason}", "bad")
                continue
            change = run.state.changed
            signs = zip("+~-", change.counts if change else (), strict=False)
            counts = [f"{sign}{count}" for sign, count in signs if count]
            self._say(run.worker_id, "  ".join([text, " ".join(counts)]).rstrip(), "good")

    def _say(self, who: str, text: str, colour: str) -> None:
        at = time.strftime("%H:%M:%S", time.localtime(self._clock.now()))
        # Hidden first: escaping may take a key apart. Then nothing of a task moves the cursor.
        shown = printable(self._secrets.hide(text))
        if self._coloured and colour:
            shown = f"\033[{_COLOURS[colour]}m{shown}\033[0m"
        self._outbox.put(f"{at} {who} {shown}")

    def _print(self, lines: Sequence[str]) -> None:
        dropped = self._outbox.dropped
        if dropped > self._told_of:
            lines = [*lines, f"{dropped - self._told_of} lines were dropped here"]
            self._told_of = dropped
        self._stream.write("\n".join(lines) + "\n")
        self._stream.flush()


def _step(claim: Claim) -> str:
    attempt = claim.attempt
    retry = f" retry {attempt.retry_count}" if attempt.retry_count else ""
    return f"{attempt.reference_task_name}{retry}"
