"""Exclusive locks that vanish with the process that holds them."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

_STEP_SECONDS = 0.02


class FileLock:
    """One ``flock`` on one file; the kernel releases it however the process ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def acquire(self, timeout_seconds: float = 0.0) -> bool:
        """Take the lock; False when another process holds it until time is up."""
        deadline = time.monotonic() + timeout_seconds
        while not self._try():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_STEP_SECONDS)
        return True

    def _try(self) -> bool:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(
            self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The holder before us may have removed the file: a lock on a file that no one else
            # can find is no lock.
            kept = os.path.samestat(os.fstat(descriptor), self.path.stat())
        except OSError:
            os.close(descriptor)
            return False
        if not kept:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def release(self, *, remove: bool = False) -> None:
        """Give the lock back; a second time is fine."""
        if self._descriptor is None:
            return
        if remove:
            self.path.unlink(missing_ok=True)
        os.close(self._descriptor)
        self._descriptor = None


def executor_lock(directory: Path, executor_id: str) -> FileLock:
    """Name the lock an executor holds while it lives."""
    return FileLock(directory / f"executor-{executor_id}.lock")


def run_lock(directory: Path, run_id: str) -> FileLock:
    """Name the lock a process holds while it drives a run."""
    return FileLock(directory / f"run-{run_id}.lock")


def held(lock: FileLock) -> bool:
    """Return whether a process that lives holds a lock; nothing is made or removed."""
    try:
        descriptor = os.open(lock.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def tidy_locks(directory: Path) -> None:
    """Remove the locks of executors that are gone."""
    for path in directory.glob("executor-*.lock"):
        with FileLock(path) as lock, suppress(OSError):
            if lock.acquire():
                lock.release(remove=True)


def await_gone(directory: Path, executor_id: str, timeout_seconds: float) -> bool:
    """Wait until an executor of an earlier owner is gone, and tidy its lock away."""
    with executor_lock(directory, executor_id) as lock:
        if not executor_id or not lock.path.exists():
            return True
        gone = lock.acquire(timeout_seconds)
        lock.release(remove=True)
        return gone
