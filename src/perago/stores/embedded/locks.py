"""File locks that die with their holder: shared for uploads, exclusive for the sweep."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perago.errors import StoreUnavailableError

_PAUSE_SECONDS = 0.02


@contextmanager
def held(path: Path, *, exclusive: bool, timeout_seconds: float) -> Iterator[None]:
    """Hold the lock for the block; the kernel releases it when the process is killed."""
    # Each holder opens the file itself: locks of one open file would count as one.
    handle = _open(path)
    try:
        _acquire(handle, path, exclusive=exclusive, deadline=time.monotonic() + timeout_seconds)
        yield
    finally:
        fcntl.flock(handle, fcntl.LOCK_UN)  # A child that was forked meanwhile has it open, too.
        os.close(handle)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreUnavailableError(
            f"the lock {path} cannot be opened: {error.strerror}",
            remedy=f"make {path.parent} writable for this user, then try again",
        ) from error


def _acquire(handle: int, path: Path, *, exclusive: bool, deadline: float) -> None:
    kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    while True:
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                others = "uploads are" if exclusive else "a garbage collection is"
                raise StoreUnavailableError(
                    f"{others} still under way in the store at {path.parent}",
                    remedy="try again when they are over",
                ) from None
            time.sleep(_PAUSE_SECONDS)
        else:
            return
