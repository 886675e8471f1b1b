"""Where a file system puts new directories: apart from each other, or in one heap."""

from __future__ import annotations

import fcntl
import os
import struct
import sys
from pathlib import Path

_GET_FLAGS = 0x80086601
_SET_FLAGS = 0x40086602
_TOPDIR = 0x00020000
_FLAGS = struct.Struct("l")


def spread(directory: Path) -> bool:
    """Have ext4 put each directory below this one in a place of its own; False where it cannot.

    Attempts come and go: the files of the next one would be made where those of the last one have
    just been deleted, and there ext4 looks at every freed inode before it takes a new one. Apart
    from each other, creating thousands of files takes a tenth of the time.
    """
    if sys.platform != "linux":
        return False
    try:
        opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        found = _FLAGS.unpack(fcntl.ioctl(opened, _GET_FLAGS, _FLAGS.pack(0)))[0]
        fcntl.ioctl(opened, _SET_FLAGS, _FLAGS.pack(found | _TOPDIR))
    except OSError:
        return False  # Another file system, or somebody else's directory.
    finally:
        os.close(opened)
    return True
