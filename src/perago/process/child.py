"""The executor process: makes its work once, then runs one claim at a time.

It ends with its parent: a watcher kills the whole process group the moment the parent is gone.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import connection, parent_process
from pathlib import Path
from typing import Any, Final, TextIO

from perago.errors import PeragoError, RuntimeConfigError
from perago.process.lock import FileLock, executor_lock
from perago.process.reports import Body, Make, Send, Work
from perago.protocol.outcome import Outcome, describe
from perago.protocol.values import Claim, Status

Channel = connection.Connection
LOCK_SECONDS: Final = 5.0
ORPHANED: Final = 70
"""Exit code of an executor whose parent vanished, should the signal not have ended it first."""


@dataclass(frozen=True, slots=True)
class Start:
    """Everything an executor process is started with; all of it crosses to another process."""

    executor_id: str
    make: Make
    channel: Channel
    stdout: Channel | None = None
    stderr: Channel | None = None
    lock_directory: Path | None = None


# --- what goes from child to parent ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ready:
    """The work is made; claims may come."""


@dataclass(frozen=True, slots=True)
class Unready:
    """The work could not be made."""

    error: PeragoError
    detail: str


@dataclass(frozen=True, slots=True)
class Said:
    """A message of the work."""

    execution_id: str
    body: Body


@dataclass(frozen=True, slots=True)
class Done:
    """A claim has been run."""

    execution_id: str
    outcome: Outcome


def main(start: Start) -> None:
    """Live as an executor until the parent closes the channel."""
    _settle_signals()
    _watch_parent()
    locks: list[FileLock] = []

    def make(send: Send) -> Work:
        _redirect(start)
        if start.lock_directory is not None:
            locks.append(_life_lock(start.lock_directory, start.executor_id))
        return start.make(send)

    # A closed channel means that there is nobody left to work for.
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        Executor(start.channel).live(make)
    _flush()
    for lock in locks:
        lock.release(remove=True)


def _life_lock(directory: Path, executor_id: str) -> FileLock:
    """Hold a lock for as long as this process lives, so that others can tell."""
    lock = executor_lock(directory, executor_id)
    if not lock.acquire(LOCK_SECONDS):
        raise RuntimeConfigError(
            f"an executor cannot lock {lock.path}", remedy="use a directory on a local disk"
        )
    return lock


class Executor:
    """Runs claims that arrive on a channel, and sends back what the work says."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel
        self._sending = threading.Lock()
        self._execution_id = ""

    def live(self, make: Make) -> None:
        """Make the work, then run claims until None comes."""
        try:
            work = make(self.say)
        except BaseException as error:  # noqa: BLE001 - also a SystemExit of a user's module
            self._send(Unready(as_start_error(error), traceback.format_exc()))
            return
        self._send(Ready())
        while (claim := self._channel.recv()) is not None:
            self._execution_id = claim.execution_id
            outcome = run(work, claim)
            _flush()
            self._execution_id = ""
            try:
                self._send(Done(claim.execution_id, outcome))
            except (TypeError, AttributeError, ValueError) as error:  # it cannot be pickled
                self._send(Done(claim.execution_id, failed(error)))

    def say(self, body: Body) -> None:
        """Send a message; used from any thread of the work."""
        self._send(Said(self._execution_id, body))

    def _send(self, item: object) -> None:
        with self._sending:
            self._channel.send(item)


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


def _settle_signals() -> None:
    """Leave Ctrl-C to the parent, and lead a group of our own so that it can end all of us."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # The parent blocked SIGINT while it started us.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    with suppress(OSError):
        os.setpgid(0, 0)


def _watch_parent() -> None:
    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        connection.wait([parent.sentinel])
        with suppress(OSError):
            if os.getpgid(0) == os.getpid():
                os.killpg(0, signal.SIGKILL)
        os._exit(ORPHANED)

    threading.Thread(target=watch, name="perago-parent-watch", daemon=True).start()


def _redirect(start: Start) -> None:
    """Point descriptors 1 and 2 at the parent's pipes, so that native code follows too."""
    _flush()
    if start.stdout is not None:
        _replace(start.stdout, 1)
        sys.stdout = _lines_to(1)
    if start.stderr is not None:
        _replace(start.stderr, 2)
        sys.stderr = _lines_to(2)


def _replace(pipe: Channel, descriptor: int) -> None:
    os.dup2(pipe.fileno(), descriptor)
    pipe.close()


def _lines_to(descriptor: int) -> TextIO:
    """Open a new stream: the old one remembers whether its file could seek."""
    return open(
        descriptor, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False
    )


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
