"""Contents this machine has seen, by checksum: the next step of a pipeline downloads nothing.

One directory, shared by all workers of a user. Files are immutable, arrive by rename and are
copied out, never linked: a task may write to its own file. What is read is verified; a damaged
file is removed and fetched again. When the cache is too big, the least recently used go first.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from perago.ports import Advance
from perago.protocol.values import Entry
from perago.transfer import copying

_TRIM_TO = 0.9
_READ_ONLY = 0o444


class ContentCache:
    """At most ``max_bytes`` of file contents below ``root``."""

    def __init__(self, root: Path, max_bytes: int) -> None:
        self._root = root
        self._max_bytes = max_bytes
        self._arrived = 0

    def fetch(self, entry: Entry, to: Path, advance: Advance) -> bool:
        """Copy a content to a new file; False when it is not here, or not whole."""
        place = self._place(entry)
        if place is None:
            return False
        try:
            source = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            found = self._copy_out(source, to, entry, advance)
            os.utime(source)
        finally:
            os.close(source)
        if found == entry:
            return True
        with suppress(FileNotFoundError):
            place.unlink()
        to.unlink()
        return False

    def keep(self, entry: Entry, source: Path) -> None:
        """Remember a file's content; quietly does nothing where that is not possible.

        The file was just verified, so it is only copied.
        """
        place = self._place(entry)
        if place is None or entry.size > self._max_bytes or place.exists():
            return
        draft = self._root / f"new-{os.getpid()}-{uuid.uuid4().hex}"
        try:
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._copy_in(source, draft, entry)
            draft.rename(place)
        except OSError:
            with suppress(OSError):
                draft.unlink()
            return
        self._arrived += entry.size
        if self._arrived > self._max_bytes // 10:
            self._arrived = 0
            self.trim()

    def trim(self) -> int:
        """Remove the least recently used until there is room again; returns the bytes freed."""
        found = sorted(self._files())
        total = sum(size for _, size, _ in found)
        freed = 0
        for _, size, path in found:
            if total - freed <= self._max_bytes * _TRIM_TO:
                break
            with suppress(OSError):
                path.unlink()
                freed += size
        return freed

    def _copy_out(self, source: int, to: Path, entry: Entry, advance: Advance) -> Entry:
        algorithm = entry.checksum.partition(":")[0]
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            target = os.open(to, flags, 0o644)
        except FileNotFoundError:
            to.parent.mkdir(parents=True, exist_ok=True)
            target = os.open(to, flags, 0o644)
        try:
            return copying.copy(source, target, entry.size, advance, algorithm)
        finally:
            os.close(target)

    def _copy_in(self, source: Path, draft: Path, entry: Entry) -> None:
        """Copy, and leave it out when the file is no longer what it was."""
        reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            writing = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                algorithm = entry.checksum.partition(":")[0]
                found = copying.copy(reading, writing, entry.size, lambda _: None, algorithm)
                os.fchmod(writing, _READ_ONLY)
            finally:
                os.close(writing)
        finally:
            os.close(reading)
        if found != entry:
            raise OSError(f"{source} changed")

    def _place(self, entry: Entry) -> Path | None:
        """Name the file of a content; None for a checksum that says nothing of the content."""
        algorithm, _, digest = entry.checksum.partition(":")
        if algorithm not in hashlib.algorithms_guaranteed or not digest.isalnum():
            return None
        return self._root / algorithm / digest[:2] / digest

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        for path in self._root.glob("*/*/*"):
            with suppress(OSError):
                found = path.stat()
                yield found.st_mtime, found.st_size, path
