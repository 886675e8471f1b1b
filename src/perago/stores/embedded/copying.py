"""Copying file contents: by sharing blocks, inside the kernel, or through a buffer."""

from __future__ import annotations

import fcntl
import hashlib
import os
import sys

from perago.ports import Advance
from perago.protocol.values import Entry
from perago.stores.embedded.ranges import checksum_of

CHUNK = 1 << 20
_FICLONE = 0x40049409


def reflink(source: int, target: int) -> bool:
    """Let the target share the blocks of the source; False where the file system cannot."""
    if sys.platform != "linux":
        return False
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError:
        return False
    return True


def kernel_copy(source: int, target: int) -> bool:
    """Copy without passing through this process; False, target untouched, where not possible."""
    if not hasattr(os, "copy_file_range"):
        return False
    done = 0
    while True:
        try:
            # Offsets are given, so the positions of both files stay at the start.
            moved = os.copy_file_range(source, target, 64 * CHUNK, done, done)
        except OSError:
            if done:
                raise
            return False
        if not moved:
            return True
        done += moved


def stream(source: int, target: int | None, advance: Advance) -> Entry:
    """Read to the end, write what was read to ``target`` if there is one; returns what it was."""
    hashed = hashlib.sha256()
    buffer = memoryview(bytearray(min(CHUNK, max(os.fstat(source).st_size, 1))))
    size = 0
    while got := os.readv(source, [buffer]):
        part = buffer[:got]
        hashed.update(part)
        if target is not None:
            write_all(target, part)
        size += got
        advance(got)
    return Entry(size, checksum_of(hashed.hexdigest()))


def entry_of(content: bytes) -> Entry:
    """Say what bytes are."""
    return Entry(len(content), checksum_of(hashlib.sha256(content).hexdigest()))


def write_all(target: int, part: memoryview) -> None:
    """Write the whole of ``part``: one call may write less."""
    while part:
        part = part[os.write(target, part) :]
