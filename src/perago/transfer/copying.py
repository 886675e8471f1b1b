"""Copying file contents: by sharing blocks, inside the kernel, or through a buffer."""

from __future__ import annotations

import fcntl
import itertools
import os
import sys
from hashlib import new as new_hash

from perago.ports import Advance
from perago.protocol.values import Entry
from perago.transfer.hashing import BIG_BYTES, Hashing

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


def stream(source: int, target: int | None, advance: Advance, algorithm: str) -> Entry:
    """Read to the end, write what was read to ``target`` if there is one; returns what it was."""
    expected = os.fstat(source).st_size
    hashed = Hashing(algorithm, expected)
    # Of a big one the last part may still be hashed while the next is read.
    count = 2 if expected >= BIG_BYTES else 1
    buffers = [memoryview(bytearray(min(CHUNK, max(expected, 1)))) for _ in range(count)]
    size = 0
    for buffer in itertools.cycle(buffers):
        got = os.readv(source, [buffer])
        if not got:
            break
        part = buffer[:got]
        hashed.update(part)
        if target is not None:
            write_all(target, part)
        size += got
        advance(got)
    return Entry(size, hashed.checksum)


def copy(source: int, target: int, size: int, advance: Advance, algorithm: str) -> Entry:
    """Copy by the cheapest means, and say what is in the target now."""
    # A big one is written while it is hashed, for which it has to pass through here.
    by_kernel = size < BIG_BYTES
    if size > CHUNK and (reflink(source, target) or (by_kernel and kernel_copy(source, target))):
        return stream(target, None, advance, algorithm)
    return stream(source, target, advance, algorithm)


def move(source: int, target: int) -> None:
    """Copy by the cheapest means, without looking at what it is."""
    if reflink(source, target) or kernel_copy(source, target):
        return
    while part := os.read(source, CHUNK):
        write_all(target, memoryview(part))


def entry_of(content: bytes | memoryview, algorithm: str = "sha256") -> Entry:
    """Return what bytes are."""
    digest = new_hash(algorithm, content, usedforsecurity=False).hexdigest()
    return Entry(len(content), f"{algorithm}:{digest}")


def write_all(target: int, part: memoryview) -> None:
    """Write the whole of ``part``: one call may write less."""
    while part:
        part = part[os.write(target, part) :]
