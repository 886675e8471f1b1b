"""Whether the times of files tell of every change, on the file system of a directory (S2).

On tmpfs they do not: a page that was read through a shared mapping is written without the kernel
being asked, so that nothing notes the time. What times do not tell, a hash has to.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from pathlib import Path


def tell(directory: Path) -> bool | None:
    """Try it with a file that has no name; None when that, or mapping a file, is not possible."""
    try:
        with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
            return _moves(file.fileno())
    except (OSError, ValueError):
        return None


def _moves(fd: int) -> bool:
    """Write through a mapping in both ways in which a page can get there, and look at the time."""
    os.write(fd, bytes(2 * mmap.PAGESIZE))
    with mmap.mmap(fd, 2 * mmap.PAGESIZE) as mapped:
        for position, read_first in ((0, True), (mmap.PAGESIZE, False)):
            if read_first:
                _ = mapped[position]
            os.utime(fd, ns=(0, 0))
            mapped[position] = 1
            # Before it is flushed: a body need not do that either.
            if os.fstat(fd).st_mtime_ns == 0:
                return False
    return True
