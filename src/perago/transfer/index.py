"""Where small contents stand: one SQLite file beside the packs, for all processes of a user.

Losing it loses a cache, so nothing here waits for the disk, and a file that is no database any
more is removed and begun again. Rows may be wrong; whoever reads a content verifies it.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from perago.sqlite import opened

T = TypeVar("T")

Place = tuple[int, int]
"""Number of a pack, and the offset in it."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS contents (
    key BLOB PRIMARY KEY, pack INTEGER, at INTEGER
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS aliases (tag TEXT PRIMARY KEY, content TEXT) WITHOUT ROWID;
"""
_AT_ONCE = 500
_WAIT_SECONDS = 10


class Index:
    """Keys of contents to places; other names of contents. Trouble means: not known."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._turn = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._owner = 0

    def places(self, keys: Sequence[bytes]) -> dict[bytes, Place]:
        """Find contents, those that are known."""
        found: dict[bytes, Place] = {}

        def look(database: sqlite3.Connection) -> None:
            for some in _split(keys):
                query = f"SELECT key, pack, at FROM contents WHERE key IN ({_marks(some)})"  # noqa: S608
                found.update({key: (pack, at) for key, pack, at in database.execute(query, some)})

        self._try(look)
        return found

    def add(self, rows: Iterable[tuple[bytes, int, int]]) -> None:
        """Say where contents are now."""

        def add(database: sqlite3.Connection) -> None:
            database.execute("BEGIN IMMEDIATE")
            database.executemany("INSERT OR REPLACE INTO contents VALUES (?,?,?)", rows)
            database.execute("COMMIT")

        self._try(add)

    def forget(self, key: bytes, place: Place) -> None:
        """Know no longer that a content is there; it may be known elsewhere by now."""
        query = "DELETE FROM contents WHERE key=? AND pack=? AND at=?"
        self._try(lambda database: database.execute(query, (key, *place)))

    def keep_only(self, packs: Sequence[int]) -> None:
        """Forget all that is in other packs."""
        query = "DELETE FROM contents WHERE pack NOT IN (SELECT value FROM json_each(?))"
        listed = f"[{','.join(map(str, packs))}]"
        self._try(lambda database: database.execute(query, (listed,)))

    def also(self, tag: str, content: str) -> None:
        """Remember another name of a content."""
        query = "INSERT OR REPLACE INTO aliases VALUES (?,?)"
        self._try(lambda database: database.execute(query, (tag, content)))

    def contents_of(self, tags: Sequence[str]) -> dict[str, str]:
        """Find what other names stand for."""
        found: dict[str, str] = {}

        def look(database: sqlite3.Connection) -> None:
            for some in _split(tags):
                query = f"SELECT tag, content FROM aliases WHERE tag IN ({_marks(some)})"  # noqa: S608
                found.update(database.execute(query, some).fetchall())

        self._try(look)
        return found

    def close(self) -> None:
        """Close the database."""
        with self._turn:
            self._release()

    def _try(self, work: Callable[[sqlite3.Connection], object]) -> None:
        """Give the database to one thread; what goes wrong ends here, quietly."""
        with self._turn:
            try:
                work(self._connected())
            except sqlite3.OperationalError:
                self._undo()  # Busy, full, not permitted: not now.
            except sqlite3.DatabaseError:
                self._release()
                for end in ("", "-wal", "-shm"):
                    with suppress(OSError):
                        os.unlink(f"{self._path}{end}")  # noqa: PTH108 - a plain string
            except OSError:
                return

    def _connected(self) -> sqlite3.Connection:
        if self._owner != os.getpid():
            self._connection = None  # A connection does not survive a fork; it is the parent's.
        if self._connection is None:
            Path(self._path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._connection = opened(
                Path(self._path), _WAIT_SECONDS, _prepare, check_same_thread=False
            )
            self._owner = os.getpid()
        return self._connection

    def _undo(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.rollback()

    def _release(self) -> None:
        if self._connection is not None and self._owner == os.getpid():
            with suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA synchronous=OFF")
    connection.executescript(_SCHEMA)


def _split(values: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), _AT_ONCE):
        yield values[start : start + _AT_ONCE]


def _marks(values: Sequence[object]) -> str:
    return ",".join("?" * len(values))
