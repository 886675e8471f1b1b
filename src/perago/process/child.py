"""The executor process: makes its work once, then runs one claim at a time.

It ends with its parent: a watcher kills the whole process group the moment the parent is gone.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import connection, parent_process
from pathlib import Path
from typing import Final, TextIO

from perago.errors import RuntimeConfigError
from perago.process.channel import ExecutorsEnd
from perago.process.executor import Executor, flush_output
from perago.process.lock import FileLock, executor_lock
from perago.process.reports import ExecutorChannel, Make, Work

Channel = connection.Connection
LOCK_SECONDS: Final = 5.0
ORPHANED: Final = 70
"""Exit code of an executor whose parent vanished, should the signal not have ended it first."""
_OOM_SCORE: Final = "500"
"""When memory runs out the kernel shall end an executor, not the supervisor that reports it."""


@dataclass(frozen=True, slots=True)
class Start:
    """Everything an executor process is started with; all of it crosses to another process."""

    executor_id: str
    number: int
    make: Make
    channel: Channel
    stdout: Channel | None = None
    stderr: Channel | None = None
    lock_directory: Path | None = None


def main(start: Start) -> None:
    """Live as an executor until the parent closes the channel."""
    _settle_signals()
    _watch_parent()
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)
    locks: list[FileLock] = []

    def make(line: ExecutorChannel) -> Work:
        _redirect(start)
        if start.lock_directory is not None:
            locks.append(_life_lock(start.lock_directory, start.executor_id))
        return start.make(line)

    # A closed channel means that the owner is gone.
    with suppress(EOFError, OSError):
        Executor(ExecutorsEnd(start.channel), start.number).live(make)
    flush_output()
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
    flush_output()
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
