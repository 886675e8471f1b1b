"""How big a cache is, and what leaves it: the least recently used, by bytes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from perago.transfer.packs import SUFFIX, Packs

DRAFT = "new-"
_TRIM_TO = 0.9
_OFTEN_SECONDS = 3600


class Size:
    """Counts what comes, and makes room from time to time.

    A pack goes whole, by the time it was last written to. So what is read from one that goes soon
    is written again to a young one: ``horizon`` says which those are.
    """

    def __init__(self, root: Path, max_bytes: int, packs: Packs) -> None:
        self._root = root
        self._max_bytes = max_bytes
        self._packs = packs
        self._trimmed = root / "trimmed"
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
            return float(self._trimmed.read_text())
        except (OSError, ValueError):
            return 0.0

    def trim(self) -> int:
        """Remove until there is room again; returns the bytes freed."""
        self._arrived = 0
        self._remove_drafts()
        found = sorted(self._files())
        left = sum(size for _, size, _ in found)
        freed, horizon, packs = 0, 0.0, False
        for modified, size, path in found:
            if left > self._max_bytes * _TRIM_TO:
                with suppress(OSError):
                    path.unlink()
                    freed += size
                    packs = packs or path.suffix == SUFFIX
            elif left > self._max_bytes / 2:
                horizon = modified
            left -= size
        if packs:
            self._packs.forget_missing()
        with suppress(OSError):
            self._trimmed.write_text(repr(horizon))
        return freed

    def _remove_drafts(self) -> None:
        for draft in self._root.glob(f"{DRAFT}*"):
            with suppress(OSError):
                if time.time() - draft.stat().st_mtime > _OFTEN_SECONDS:
                    draft.unlink()  # Its process is gone, or will notice.

    def _is_time(self) -> bool:
        """Tell whether nobody has trimmed for a while."""
        try:
            return time.time() - self._trimmed.stat().st_mtime > _OFTEN_SECONDS
        except OSError:
            return True

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        for pattern in ("*/*/*", f"packs/*{SUFFIX}"):
            for path in self._root.glob(pattern):
                with suppress(OSError):
                    found = path.lstat()
                    yield found.st_mtime, found.st_size, path
