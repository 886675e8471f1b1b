"""Notices that a home has changed, by a number that SQLite keeps for its readers."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from perago.app.local import Home
from perago.sqlite import looked_at

_WAIT_SECONDS: Final = 1.0
_FILES: Final = ("runs.sqlite", "events.sqlite", "store/catalogue.sqlite")


class Watch:
    """One reader's look at the files of a home: cheap enough to be repeated all the time."""

    def __init__(self, home: Home) -> None:
        self._paths = [home.path / name for name in _FILES]
        self._open: dict[Path, sqlite3.Connection] = {}
        self._seen: tuple[int, ...] | None = None
        self._lock = threading.Lock()
        self._closed = False

    def changed(self) -> bool:
        """Return whether anything was written since the last look; the first look sees nothing."""
        with self._lock:
            if self._closed:
                return False
            now = tuple(self._version(path) for path in self._paths)
            before, self._seen = self._seen, now
            return before is not None and before != now

    def close(self) -> None:
        """Close the files."""
        with self._lock:
            self._closed = True
            for connection in self._open.values():
                connection.close()

    def _version(self, path: Path) -> int:
        """Ask for the number that every commit of others moves; -1 where there is no file yet."""
        with suppress(sqlite3.Error):
            if path not in self._open:
                self._open[path] = looked_at(path, _WAIT_SECONDS, check_same_thread=False)
            return int(self._open[path].execute("pragma data_version").fetchone()[0])
        return -1
