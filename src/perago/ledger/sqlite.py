"""A ledger in one SQLite file: for workers of one machine."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from perago.errors import LedgerUnavailableError
from perago.ledger.sql import SCHEMA, Row
from perago.sqlite import opened

WAIT_SECONDS: Final = 5.0


class SqliteDatabase:
    """One connection per thread, made when it is needed; several processes may write."""

    def __init__(self, path: Path, wait_seconds: float = WAIT_SECONDS) -> None:
        self._path = path
        self._wait_seconds = wait_seconds
        self._local = threading.local()

    def run(self, statement: str, values: Sequence[object]) -> list[Row]:
        """Carry out one statement."""
        try:
            return self._connection().execute(statement, tuple(values)).fetchall()
        except (OSError, sqlite3.Error) as error:
            self.close()
            raise LedgerUnavailableError(
                f"ledger {self._path} cannot be used: {error}",
                remedy="check PERAGO_LEDGER, and the permissions and the space of that place",
            ) from error

    def close(self) -> None:
        """Close this thread's connection."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is not None:
            self._local.connection = None
            connection.close()

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._opened()
            self._local.connection = connection
        return connection

    def _opened(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        return opened(self._path, self._wait_seconds, _prepare)


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA synchronous=FULL")
    for statement in SCHEMA:
        connection.execute(statement)
