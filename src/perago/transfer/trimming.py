"""How big a cache is, and what leaves it: the least recently used, by bytes."""

from __future__ import annotations

import os
import time
from contextlib import suppress

from perago.transfer.cache_files import SUFFIX, TRIMMED, CacheFiles
from perago.transfer.packs import Packs

_TRIM_TO = 0.9
_OFTEN_SECONDS = 3600


class Size:
    """Counts what comes, and makes room from time to time.

    A pack goes whole, by the time it was last written to. So what is read from one that goes soon
    is written again to a young one: ``horizon`` says which those are.
    """

    def __init__(self, files: CacheFiles, max_bytes: int, packs: Packs) -> None:
        self._files = files
        self._max_bytes = max_bytes
        self._packs = packs
        self._arrived = 0
        self._first = True

    def grew(self, size: int) -> None:
        """Count what came."""
        self._arrived += size

    def settle(self) -> None:
        """Make room if it may be time to; short-lived workers, too, look once in a while."""
        if not self._arrived:
            return
        first, self._first = self._first, False
        if self._arrived > self._max_bytes // 10 or (first and self._is_time()):
            self.trim()

    def horizon(self) -> float:
        """Return the time until which the older half of a full cache was written."""
        try:
            return float(_read(self._files))
        except (OSError, ValueError):
            return 0.0

    def trim(self) -> int:
        """Remove until there is room again; returns the bytes freed."""
        self._arrived = 0
        try:
            found = sorted(self._files.contents())
        except OSError:
            return 0  # It is not ours any more, or not there.
        self._remove_drafts()
        left = sum(size for _, size, _ in found)
        freed, horizon, packs = 0, 0.0, False
        for modified, size, path in found:
            if left > self._max_bytes * _TRIM_TO:
                with suppress(OSError):
                    self._files.unlink(path)
                    freed += size
                    packs = packs or path.endswith(SUFFIX)
            elif left > self._max_bytes / 2:
                horizon = modified
            left -= size
        if packs:
            self._packs.forget_missing()
        with suppress(OSError):
            _write(self._files, repr(horizon))
        return freed

    def _remove_drafts(self) -> None:
        with suppress(OSError):
            for draft in self._files.drafts():
                if time.time() - draft.modified > _OFTEN_SECONDS:
                    self._files.unlink(draft.path)  # Its process is gone, or will notice.

    def _is_time(self) -> bool:
        """Return whether nobody has trimmed for a while."""
        try:
            with self._files.top() as top:
                found = os.stat(TRIMMED, dir_fd=top, follow_symlinks=False)
        except OSError:
            return True
        return time.time() - found.st_mtime > _OFTEN_SECONDS


def _read(files: CacheFiles) -> bytes:
    fd = files.open(TRIMMED)
    try:
        return os.read(fd, 100)
    finally:
        os.close(fd)


def _write(files: CacheFiles, text: str) -> None:
    """Write it anew: what may stand in its place is not written to."""
    files.unlink(TRIMMED)
    fd = files.create(TRIMMED)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
