"""Trees and ranges in the catalogue, and the edits that make the next one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

from perago.errors import CorruptObjectError
from perago.protocol.values import Entry
from perago.stores.embedded import commits, merging, trees
from perago.stores.embedded.commits import Record
from perago.stores.embedded.ranges import Range
from perago.stores.embedded.trees import Edit, Load, Tree


def loader(db: sqlite3.Connection) -> Load:
    """Read range bodies through this connection."""

    def load(range_id: str) -> bytes:
        return _body(db, "ranges", range_id)

    return load


def read(db: sqlite3.Connection, tree: str) -> Tree:
    """Read a tree by its id."""
    return trees.decode(_body(db, "trees", tree))


def save(db: sqlite3.Connection, pieces: Iterable[trees.Piece]) -> str:
    """Write the ranges that are new, and the tree; returns its id."""
    kept: list[Range] = []
    for piece, body in pieces:
        if body is not None:
            db.execute("INSERT OR IGNORE INTO ranges VALUES (?, ?)", (piece.id, body))
        kept.append(piece)
    tree = tuple(kept)
    name = trees.tree_id(tree)
    db.execute("INSERT OR IGNORE INTO trees VALUES (?, ?)", (name, trees.encode(tree)))
    return name


def edited(db: sqlite3.Connection, tree: str, edits: Iterable[Edit]) -> str:
    """Apply sorted edits to a tree; returns the id of the result."""
    return save(db, trees.edit(read(db, tree), loader(db), edits))


def merged(db: sqlite3.Connection, repository: str, ours: Record, theirs: Record) -> str:
    """Merge two commits from their merge base; ``MergeConflictError`` names the first clashes."""
    if theirs.commit.parent == ours.commit.id:
        return theirs.tree
    base = commits.merge_base(db, repository, ours.commit.id, theirs.commit.id)
    load = loader(db)
    origin: Tree = () if base is None else read(db, base.tree)
    mine = read(db, ours.tree)
    edits = merging.merge_edits(
        trees.diff(origin, mine, load), trees.diff(origin, read(db, theirs.tree), load)
    )
    return save(db, trees.edit(mine, load, edits))


def uncommitted(db: sqlite3.Connection, repository: str, branch: str) -> Iterator[Edit]:
    """Yield the uncommitted changes of a branch, sorted by key."""
    rows = db.execute(
        "SELECT key, size, checksum FROM changes WHERE repository = ? AND branch = ? ORDER BY key",
        (repository, branch),
    )
    for key, size, checksum in rows:
        yield key, None if checksum is None else Entry(size, checksum)


def record_changes(
    db: sqlite3.Connection, repository: str, branch: str, edits: Iterable[Edit]
) -> None:
    """Write uncommitted changes; the last word on a key counts."""
    db.executemany(
        "INSERT OR REPLACE INTO changes VALUES (?, ?, ?, ?, ?)",
        (
            (repository, branch, key, entry and entry.size, entry and entry.checksum)
            for key, entry in edits
        ),
    )


def _body(db: sqlite3.Connection, table: str, name: str) -> bytes:
    row = db.execute(f"SELECT body FROM {table} WHERE id = ?", (name,)).fetchone()  # noqa: S608
    if row is None:
        raise CorruptObjectError(
            f"the catalogue lost entry {name} of {table}",
            remedy="the commit may be past its retention; start from a branch head",
        )
    return bytes(row[0])
