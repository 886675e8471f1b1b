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
from perago.protocol.printable import printable
from perago.protocol.values import Claim

_COLOURS: Final = {"good": "32", "bad": "31", "warn": "33", "dim": "2", "": ""}
_MOST_LINES: Final = 10_000
_EVERY_SECONDS: Final = 0.05
_TOLD: Final = frozenset({"warning", "outcome unknown", "lost completion"})
_ROUTINE: Final = frozenset({"polled", "heartbeat", "slots", "executor started"})


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

    def event(self, claim: Claim, worker_id: str, name: str, facts: Mapping[str, object]) -> None:
        """Print warnings at once, and every attempt at its end."""
        ended = self._attempts.event(claim, worker_id, name, facts, self._clock.monotonic())
        if name in _TOLD:
            told = f"{name}: {facts['text']}" if "text" in facts else name
            why = f" ({facts['why']})" if facts.get("why") else ""
            self._say(worker_id, f"{_step(claim)}  {told}{why}", "warn")
        self._ended(ended)

    def output(self, claim: Claim | None, worker_id: str, stream: str, line: str) -> None:
        """Print a line as it was printed, with who printed it."""
        del stream
        self._say(worker_id, f"{_step(claim) if claim else '-'} | {line}", "dim")

    def worker(self, name: str, facts: Mapping[str, object]) -> None:
        """Print what the worker did, unless it does it all the time."""
        if name not in _ROUTINE:
            told = ", ".join(f"{key} {value}" for key, value in facts.items() if value != "")
            bad = any(word in name for word in ("died", "failed", "lost", "killed", "stuck"))
            self._say("worker", f"{name}{': ' if told else ''}{told}", "bad" if bad else "")
        self._ended(self._attempts.worker(name, facts, self._clock.monotonic()))

    def close(self, timeout_seconds: float) -> None:
        """Print the rest."""
        self._outbox.close(timeout_seconds)

    def _ended(self, attempts: list[Ended]) -> None:
        for ended in attempts:
            run = ended.run
            text = f"{_step(run.claim)}  {run.status}  {ended.seconds:.3f} s"
            if not ended.completed:
                self._say(run.worker_id, f"{text}  {run.reason}", "bad")
                continue
            counts = [f"{sign}{run.facts[kind]}" for kind, sign in _SIGNS if run.facts.get(kind)]
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


_SIGNS: Final = (("added", "+"), ("changed", "~"), ("removed", "-"))


def _step(claim: Claim) -> str:
    attempt = claim.attempt
    retry = f" retry {attempt.retry_count}" if attempt.retry_count else ""
    return f"{attempt.reference_task_name}{retry}"
