"""The tables of the catalogue, and the version that says which they are."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from perago.errors import StoreError

VERSION = 1

TABLES = (
    "CREATE TABLE schema_version (version INTEGER NOT NULL)",
    """CREATE TABLE repositories (
        name TEXT PRIMARY KEY,
        default_branch TEXT NOT NULL,
        created_at REAL NOT NULL
    ) WITHOUT ROWID""",
    """CREATE TABLE branches (
        repository TEXT NOT NULL,
        name TEXT NOT NULL,
        head TEXT NOT NULL,
        hidden INTEGER NOT NULL,
        created_at REAL NOT NULL,
        PRIMARY KEY (repository, name)
    ) WITHOUT ROWID""",
    # generation: 1 for a root, else one more than the highest of the parents.
    """CREATE TABLE commits (
        repository TEXT NOT NULL,
        id TEXT NOT NULL,
        tree TEXT NOT NULL,
        parents TEXT NOT NULL,
        message TEXT NOT NULL,
        metadata TEXT NOT NULL,
        created_at REAL NOT NULL,
        generation INTEGER NOT NULL,
        PRIMARY KEY (repository, id)
    ) WITHOUT ROWID""",
    "CREATE TABLE trees (id TEXT PRIMARY KEY, body BLOB NOT NULL)",
    "CREATE TABLE ranges (id TEXT PRIMARY KEY, body BLOB NOT NULL)",
    # Uncommitted changes; a row without size and checksum is a deletion.
    """CREATE TABLE changes (
        repository TEXT NOT NULL,
        branch TEXT NOT NULL,
        key TEXT NOT NULL,
        size INTEGER,
        checksum TEXT,
        PRIMARY KEY (repository, branch, key)
    ) WITHOUT ROWID""",
    # Objects that are whole and on disk; a file without a row is not trusted.
    "CREATE TABLE objects (digest TEXT PRIMARY KEY, size INTEGER NOT NULL) WITHOUT ROWID",
    # Heads that a branch was moved away from: they are kept for the retention (P10).
    "CREATE TABLE departed (repository TEXT NOT NULL, head TEXT NOT NULL, at REAL NOT NULL)",
)


def version(db: sqlite3.Connection) -> int | None:
    """Read which tables a catalogue has; None when it is new."""
    if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_version'").fetchone() is None:
        return None
    return int(db.execute("SELECT version FROM schema_version").fetchone()[0])


def create(db: sqlite3.Connection) -> None:
    """Write the tables of a new catalogue."""
    for statement in TABLES:
        db.execute(statement)
    db.execute("INSERT INTO schema_version VALUES (?)", (VERSION,))


def refuse_newer(found: int, path: Path) -> None:
    """Refuse a catalogue that a newer Perago wrote."""
    if found > VERSION:
        raise StoreError(
            f"the store at {path.parent} has schema version {found}, newer than the {VERSION} "
            "that this Perago knows",
            remedy="upgrade Perago, or point it at another directory",
        )
