"""Inside an executor process: one thread works, one listens, one gives signs of life."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
import traceback
from contextlib import suppress
from typing import Final

from perago.errors import PeragoError, RuntimeConfigError
from perago.process import process_state
from perago.process.channel import ExecutorsEnd
from perago.process.messages import (
    Alive,
    Cancel,
    Done,
    Message,
    Ready,
    StartFailure,
    WorkMessages,
    body_of,
    decode,
    encode,
)
from perago.process.reports import Body, Make, Work
from perago.protocol.event_format import URGENT
from perago.protocol.outcome import Outcome, describe
from perago.protocol.values import Claim, Status
from perago.tasks.cancellation import CancellationToken, holding

SIGN_SECONDS: Final = 2.0
"""How often a busy executor says that it lives."""
_TOGETHER_SECONDS: Final = 0.1
"""Messages that follow each other faster than this travel together: each wakes up the owner."""
LINE_LOST: Final = 72
"""Exit code of an executor whose body closed its line: its end cannot be heard."""


class Executor:
    """Runs claims that arrive on a channel, and sends back what the work says."""

    def __init__(self, channel: ExecutorsEnd, number: int) -> None:
        self.number = number
        self.token = CancellationToken()
        self._channel = channel
        self._sending = threading.Lock()
        self._claims: queue.SimpleQueue[tuple[Claim, CancellationToken] | None] = (
            queue.SimpleQueue()
        )
        self._tokens: dict[str, CancellationToken] = {}
        self._execution_id = ""
        self._buffer: list[bytes] = []
        self._sent_at = 0.0
        self._busy = threading.Event()

    def live(self, make: Make) -> None:
        """Make the work, then run claims until None comes."""
        try:
            work = make(self)
        except BaseException as error:  # noqa: BLE001 - also a SystemExit of a user's module
            self._send(StartFailure(as_start_error(error), traceback.format_exc()))
            return
        process_state.own().end_if_cut_off = self._end_if_cut_off
        # Both live as long as the process, and end with it: nothing joins them.
        threading.Thread(target=self._listen, name="perago-listener", daemon=True).start()
        threading.Thread(target=self._give_signs, name="perago-signs", daemon=True).start()
        self._send(Ready())
        while (given := self._claims.get()) is not None:
            self._run(work, *given)

    def _run(self, work: Work, claim: Claim, token: CancellationToken) -> None:
        self._execution_id = claim.execution_id
        self.token = token
        self._busy.set()
        with holding(token, whole_process=True):
            outcome = run(work, claim)
        flush_output()
        self._busy.clear()
        self._flush()
        self._tokens.pop(claim.execution_id, None)
        self._execution_id = ""
        last = bool(process_state.own().spoiled) or outcome.unexpected
        try:
            done = encode(Done(claim.execution_id, outcome, last))
        except (TypeError, ValueError, RecursionError) as error:  # it is not plain JSON
            done = encode(Done(claim.execution_id, failed(error), last))
        with self._sending:
            self._channel.send(done)

    # --- listening -----------------------------------------------------------------------------

    def _listen(self) -> None:
        """Take what the owner sends, also while a claim runs."""
        with suppress(EOFError, OSError):
            while True:
                item = decode(self._channel.receive())
                if isinstance(item, Cancel):
                    if token := self._tokens.get(item.execution_id):
                        token.cancel()
                elif isinstance(item, Claim):
                    token = self._tokens[item.execution_id] = CancellationToken()
                    self._claims.put((item, token))
        self._claims.put(None)

    # --- speaking ------------------------------------------------------------------------------

    def __call__(self, body: Body) -> None:
        """Send a message; used from any thread of the work."""
        written = body_of(body)
        with self._sending:
            self._buffer.append(written)
            late = time.monotonic() - self._sent_at > _TOGETHER_SECONDS
            if late or body.get("event") in URGENT:
                self._flush_locked()

    def _give_signs(self) -> None:
        signed = 0.0
        while True:
            self._busy.wait()
            time.sleep(_TOGETHER_SECONDS)
            self._end_if_cut_off()
            with suppress(OSError):
                self._flush()
                if self._busy.is_set() and time.monotonic() - signed > SIGN_SECONDS:
                    signed = time.monotonic()
                    self._send(Alive())

    def _end_if_cut_off(self) -> None:
        if self._channel.lost:
            os._exit(LINE_LOST)

    def _flush(self) -> None:
        with self._sending:
            self._flush_locked()

    def _flush_locked(self) -> None:
        if not self._buffer:
            return
        bodies, self._buffer = tuple(self._buffer), []
        self._sent_at = time.monotonic()
        self._channel.send(encode(WorkMessages(self._execution_id, bodies)))

    def _send(self, item: Message) -> None:
        with self._sending:
            self._channel.send(encode(item))


def run(work: Work, claim: Claim) -> Outcome:
    """Run one claim; whatever escapes from the work is a failure, never a success (R3)."""
    try:
        return work(claim)
    except BaseException as error:  # noqa: BLE001 - SystemExit must not end the executor
        return failed(error)


def failed(error: BaseException) -> Outcome:
    """Make the outcome of work that broke out of its own error handling."""
    return Outcome(Status.FAILED, reason=f"executor: {describe(error)}")


def as_start_error(error: BaseException) -> PeragoError:
    """Say in one sentence why an executor cannot start."""
    if isinstance(error, PeragoError):
        return error
    return RuntimeConfigError(
        f"an executor could not start: {describe(error)}",
        remedy="correct the module so that it can be imported",
    )


def flush_output() -> None:
    """Push out what was printed."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
