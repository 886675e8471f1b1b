"""Listings of commits, kept: a commit never changes, so it is listed once per machine.

A commit this machine made is not listed at all: its listing follows from that of its base and the
change. Losing any of this costs requests, never correctness.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from perago.protocol.values import ObjectInfo
from perago.sqlite import opened

_SCHEMA = """
CREATE TABLE IF NOT EXISTS listings (
    repository TEXT, ref TEXT, root TEXT, body BLOB, PRIMARY KEY (repository, ref, root)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS deltas (
    repository TEXT, ref TEXT, base TEXT, body BLOB, PRIMARY KEY (repository, ref)
) WITHOUT ROWID;
"""
_LONGEST_CHAIN = 50
_MOST_MADE = 64
"""How many staging branches are followed at a time; those of failed attempts fall out."""

MOST_BYTES = 256 << 20
"""When there is more, all of it goes: it is asked for again, and its use is not counted."""
_LOOK_EVERY = 100
_WAIT_SECONDS = 10.0

Row = tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class Delta:
    """How a commit differs from its base."""

    base: str
    puts: Sequence[Row]
    deletes: Sequence[str]


class Manifests:
    """What this machine knows of commits, in one SQLite file; what is private stays in memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()
        self._made: dict[tuple[str, str], Delta] = {}
        self._writes = 0

    def listing(self, repository: str, ref: str, root: str) -> list[ObjectInfo] | None:
        """Return a commit's listing below a root, if it is known or follows from what is."""
        chain: list[Delta] = []
        here = ref
        while (rows := self._rows(repository, here, root)) is None:
            delta = self._delta(repository, here)
            if delta is None or len(chain) == _LONGEST_CHAIN:
                return None
            chain.append(delta)
            here = delta.base
        found = {row[0]: row for row in rows}
        for delta in reversed(chain):
            for key in delta.deletes:
                found.pop(key, None)
            found.update({row[0]: row for row in delta.puts if row[0].startswith(root)})
        infos = [ObjectInfo(*found[key]) for key in sorted(found)]
        if chain:
            self.remember(repository, ref, root, infos)
        return infos

    def remember(self, repository: str, ref: str, root: str, infos: Iterable[ObjectInfo]) -> None:
        """Keep a listing that was read."""
        rows = [(info.key, info.size, info.checksum) for info in infos if info.kind == "object"]
        self._write(
            "INSERT OR REPLACE INTO listings VALUES (?,?,?,?)", repository, ref, root, _pack(rows)
        )

    # --- what is being made --------------------------------------------------------------------

    def begin(self, repository: str, branch: str, base: str) -> None:
        """Know a new staging branch: it holds what its base holds."""
        self._note(repository, branch, Delta(base, (), ()))

    def extend(
        self, repository: str, branch: str, puts: Sequence[Row], deletes: Sequence[str]
    ) -> None:
        """Add to what is known of a staging branch."""
        known = self._made.get((repository, branch))
        if known is None:
            return
        added = {row[0]: row for row in (*known.puts, *puts)}
        removed = set(deletes)
        gone = {*known.deletes, *removed}
        kept = [row for key, row in added.items() if key not in removed]
        gone -= {row[0] for row in kept}
        self._note(repository, branch, Delta(known.base, kept, sorted(gone)))

    def seal(self, repository: str, branch: str, commit: str) -> None:
        """Know a staging commit; it is kept for others only when it is published."""
        known = self._made.pop((repository, branch), None)
        if known is not None:
            self._note(repository, commit, known)

    def forget(self, repository: str, branch: str) -> None:
        """Know nothing of a staging branch any more: others write on it."""
        self._made.pop((repository, branch), None)

    def publish(self, repository: str, ref: str, staged: str) -> None:
        """Keep that a published commit holds what was staged."""
        known = self._made.pop((repository, staged), None)
        if known is not None:
            body = _pack({"puts": list(known.puts), "deletes": list(known.deletes)})
            self._write(
                "INSERT OR REPLACE INTO deltas VALUES (?,?,?,?)", repository, ref, known.base, body
            )

    def _note(self, repository: str, ref: str, delta: Delta) -> None:
        self._made[repository, ref] = delta
        while len(self._made) > _MOST_MADE:
            with suppress(KeyError, StopIteration):  # Another thread may be quicker.
                del self._made[next(iter(self._made))]

    # --- the file ------------------------------------------------------------------------------

    def close(self) -> None:
        """Close this thread's connection."""
        connection = self._local.__dict__.pop("connection", None)
        if connection is not None:
            connection.close()

    def _rows(self, repository: str, ref: str, root: str) -> list[Row] | None:
        found = self._read(
            "SELECT body FROM listings WHERE repository=? AND ref=? AND root=?",
            repository,
            ref,
            root,
        )
        rows = None if found is None else _unpack(found[0])
        return None if rows is None else [tuple(row) for row in rows]  # type: ignore[misc]

    def _delta(self, repository: str, ref: str) -> Delta | None:
        found = self._read(
            "SELECT base, body FROM deltas WHERE repository=? AND ref=?", repository, ref
        )
        body: Mapping[str, list[object]] | None
        body = None if found is None else _unpack(found[1])  # type: ignore[assignment]
        if found is None or body is None:
            return None
        puts: list[Row] = [tuple(row) for row in body["puts"]]  # type: ignore[arg-type, misc]
        return Delta(str(found[0]), puts, [str(key) for key in body["deletes"]])

    def _read(self, query: str, *values: str) -> tuple[object, ...] | None:
        try:
            row: tuple[object, ...] | None = self._connection().execute(query, values).fetchone()
        except (sqlite3.Error, OSError):
            return None
        return row

    def _write(self, query: str, *values: object) -> None:
        with suppress(sqlite3.Error, OSError):
            connection = self._connection()
            connection.execute(query, values)
            self._writes += 1
            if self._writes % _LOOK_EVERY == 0 and _used_bytes(connection) > MOST_BYTES:
                connection.executescript("DELETE FROM listings; DELETE FROM deltas;")

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = self._local.__dict__.get("connection")
        if connection is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            connection = opened(self._path, _WAIT_SECONDS, _prepare)
            self._local.connection = connection
        return connection


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.executescript(_SCHEMA)


def _used_bytes(connection: sqlite3.Connection) -> int:
    pages, free, size = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


def _pack(value: object) -> bytes:
    return zlib.compress(json.dumps(value, separators=(",", ":")).encode(), 1)


def _unpack(body: object) -> list[list[object]] | None:
    """Read what was kept; None when it was damaged since: then it is asked for again."""
    try:
        found: list[list[object]] = json.loads(zlib.decompress(body))  # type: ignore[arg-type]
    except (zlib.error, ValueError, TypeError):
        return None
    return found
