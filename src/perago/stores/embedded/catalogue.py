"""The SQLite catalogue: one connection per thread and process, short transactions."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from perago.errors import OutcomeUnknownError, StoreUnavailableError
from perago.sqlite import opened
from perago.stores.embedded import durability, schema

WAIT_SECONDS = 30.0


class _Handle:
    """A connection and the process that opened it.

    A copy that a fork left in a child is never used there and never closed: closing it could
    disturb the parent's locks.
    """

    def __init__(self, path: Path) -> None:
        self.pid = os.getpid()
        # Closed by whoever drops the last reference, maybe another thread.
        self.db = opened(path, WAIT_SECONDS, partial(_prepare, path), check_same_thread=False)
        self.close = weakref.finalize(self, _close_own, self.db, self.pid)


def _prepare(path: Path, db: sqlite3.Connection) -> None:
    """See to the tables: whole or not at all, whoever opens the catalogue meanwhile."""
    if schema.version(db) is None:
        durability.settle(path.parent)  # SQLite puts the file on disk, not the way to it.
        db.execute("BEGIN IMMEDIATE")
        try:
            if schema.version(db) is None:
                schema.create(db)
        except BaseException:
            _roll_back(db)
            raise
        db.execute("COMMIT")
    schema.refuse_newer(schema.version(db) or 0, path)


def _close_own(db: sqlite3.Connection, pid: int) -> None:
    if pid == os.getpid():
        db.close()


class Catalogue:
    """Everything the store knows except the bytes of the objects."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()
        self._inherited: list[_Handle] = []
        with self.reading():
            pass  # It is made, and refused, when it is opened.

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Return a connection for queries; each sees what is committed at that moment."""
        with self._translated():
            yield self._connection()

    @contextmanager
    def writing(
        self, *, durable: bool = True, timeout_seconds: float = WAIT_SECONDS
    ) -> Iterator[sqlite3.Connection]:
        """Run the block as one transaction that no other writer overlaps.

        ``durable``: on disk when the block ends. Staging does without: a power cut kills the
        attempt anyway, and the flush of its publication covers all that was written before it,
        because they share one log. A visible head must never fall back, so it waits for the disk.
        """
        with self._translated():
            db = self._connection()
            db.execute(f"PRAGMA busy_timeout = {max(0, int(timeout_seconds * 1000))}")
            db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                _roll_back(db)
                raise
            self._commit(db)

    def close(self) -> None:
        """Close this thread's connection; those of other threads go with their threads."""
        handle: _Handle | None = self._local.__dict__.pop("handle", None)
        if handle is not None:
            handle.close()

    def _connection(self) -> sqlite3.Connection:
        handle: _Handle | None = self._local.__dict__.get("handle")
        if handle is None or handle.pid != os.getpid():
            if handle is not None:
                self._inherited.append(handle)
            try:
                handle = self._local.handle = _Handle(self.path)
            except OSError as error:
                raise self._unusable(error) from error
        return handle.db

    def _commit(self, db: sqlite3.Connection) -> None:
        try:
            db.execute("COMMIT")
        except sqlite3.Error as error:
            if db.in_transaction:  # still open, so certainly not applied
                _roll_back(db)
                raise
            raise OutcomeUnknownError(
                f"the catalogue {self.path} failed while it committed: {error}",
                remedy=f"check the disk of {self.path.parent}, then read the branch",
            ) from error

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def _unusable(self, error: sqlite3.Error | OSError) -> StoreUnavailableError:
        return StoreUnavailableError(
            f"the catalogue {self.path} cannot be used: {error}",
            remedy=f"check that {self.path.parent} is writable and has space, then try again",
        )


def _roll_back(db: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):
        if db.in_transaction:
            db.execute("ROLLBACK")
