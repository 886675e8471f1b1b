"""What a power cut must not take: whole file systems, and the names of directories."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from perago.errors import StoreUnavailableError


def settle(directory: Path) -> None:
    """Put the names that lead to a directory on disk, which syncing the files in it does not.

    Those above a place that this user may not read are not of our making.
    """
    for place in (directory, *directory.absolute().parents):
        try:
            handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return
        try:
            os.fsync(handle)
        except OSError:  # A file system that cannot do it has nothing more to give.
            return
        finally:
            os.close(handle)


def flush(directory: Path) -> None:
    """Put everything written so far on the file system of ``directory`` on disk.

    One flush for thousands of new objects costs about as much as one for a single file; an fsync
    of each would cost as many journal commits as there are files.
    """
    syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if syncfs is None:
        os.sync()
        return
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if syncfs(handle) != 0:
            code = ctypes.get_errno()
            raise StoreUnavailableError(
                f"the file system of {directory} cannot be flushed: {os.strerror(code)}",
                remedy="repair the disk, then run again",
            )
    finally:
        os.close(handle)
