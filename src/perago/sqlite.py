"""Opens a SQLite file that several processes may make and use at once, and nobody else can read."""

from __future__ import annotations

import fcntl
import functools
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_STEP_SECONDS: Final = 0.005
_MOST_ALONE_SECONDS: Final = 10.0
_CREATE: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def opened(
    path: Path,
    wait_seconds: float,
    prepare: Callable[[sqlite3.Connection], None],
    *,
    check_same_thread: bool = True,
) -> sqlite3.Connection:
    """Open the file with a write-ahead log and see to its tables; the directory is there.

    SQLite does not wait when several turn a new file to WAL at once: it says "locked". So openers
    take turns; one that does not, of an earlier version, is waited for.
    """
    deadline = time.monotonic() + wait_seconds
    with _alone(path.parent, min(wait_seconds, _MOST_ALONE_SECONDS)):
        _make_private(path)
        while True:
            connection = sqlite3.connect(
                path,
                timeout=wait_seconds,
                isolation_level=None,  # Transactions begin and end where it is written.
                check_same_thread=check_same_thread,
            )
            try:
                if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
                    connection.execute("PRAGMA journal_mode=WAL")
                prepare(connection)
            except sqlite3.OperationalError as error:
                connection.close()
                if "locked" not in str(error) or time.monotonic() >= deadline:
                    raise
                time.sleep(_STEP_SECONDS)
            except BaseException:
                connection.close()
                raise
            else:
                return connection


@contextmanager
def _alone(directory: Path, wait_seconds: float) -> Iterator[None]:
    """Keep other openers of this directory away, as far as its file system can lock."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    deadline = time.monotonic() + wait_seconds
    turn = _turn()
    mine = turn.acquire(timeout=wait_seconds)
    try:
        while not _locked(handle) and time.monotonic() < deadline:
            time.sleep(_STEP_SECONDS)
        yield
    finally:
        with suppress(OSError):  # A child that was forked meanwhile has the descriptor, too.
            fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)
        if mine:
            turn.release()


@functools.cache
def _turn() -> threading.Lock:
    """Return the lock of this process's threads, for file systems that have none."""
    return threading.Lock()


# In the child of a fork nobody would ever release what another thread held.
os.register_at_fork(after_in_child=_turn.cache_clear)


def _locked(handle: int) -> bool:
    """Take the lock; True as well where there is none to be had."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _make_private(path: Path) -> None:
    """See that only this user can read the file, from its first moment; so are those beside it.

    A file that is there is never opened here: closing it would let go of the locks that SQLite
    holds on it for other threads.
    """
    try:
        os.close(os.open(path, _CREATE, 0o600))
    except FileExistsError:
        for end in ("", "-wal", "-shm"):
            with suppress(OSError):
                _close_to_others(path.with_name(path.name + end))


def _close_to_others(path: Path) -> None:
    found = path.lstat()
    mine = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
    if mine and found.st_mode & _OTHERS:
        path.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)


def looked_at(
    path: Path, wait_seconds: float, *, check_same_thread: bool = True
) -> sqlite3.Connection:
    """Open a file that is there, to read only: its writers are never kept waiting."""
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro",
        timeout=wait_seconds,
        isolation_level=None,
        check_same_thread=check_same_thread,
        uri=True,
    )
