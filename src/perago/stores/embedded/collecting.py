"""Garbage: what no branch, uncommitted change or recent commit needs any more (P10)."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from perago.stores.embedded import commits, snapshots
from perago.stores.embedded.objects import ObjectDirectory
from perago.stores.embedded.ranges import hex_of, unpack


@dataclass(frozen=True, slots=True)
class CollectionResult:
    """What a collection removed, or would have."""

    commits: int
    ranges: int
    objects: int
    incoming: int
    bytes_freed: int


@dataclass(frozen=True, slots=True)
class Live:
    """Everything that is still needed, by id."""

    commits: set[tuple[str, str]]
    trees: set[str]
    ranges: set[str]
    objects: set[str]


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Rows to delete."""

    commits: list[tuple[str, str]]
    trees: list[tuple[str]]
    ranges: list[tuple[str]]
    objects: list[tuple[str]]


def mark(db: sqlite3.Connection, keep_since: float) -> Live:
    """Walk from every branch head, uncommitted row, and commit or departure since then."""
    live = Live(set(), set(), set(), set())
    for (repository,) in db.execute("SELECT name FROM repositories").fetchall():
        for record in commits.ancestry(db, repository, _roots(db, repository, keep_since)):
            live.commits.add((repository, record.commit.id))
            live.trees.add(record.tree)
    load = snapshots.loader(db)
    for tree in live.trees:
        live.ranges.update(each.id for each in snapshots.read(db, tree))
    for each in live.ranges:
        live.objects.update(hex_of(entry.checksum) for _, entry in unpack(load(each)))
    staged = db.execute("SELECT checksum FROM changes WHERE checksum IS NOT NULL")
    live.objects.update(hex_of(checksum) for (checksum,) in staged)
    return live


def _roots(db: sqlite3.Connection, repository: str, keep_since: float) -> set[str]:
    rows = db.execute(
        "SELECT head FROM branches WHERE repository = :repository UNION "
        "SELECT head FROM departed WHERE repository = :repository AND at >= :since UNION "
        "SELECT id FROM commits WHERE repository = :repository AND created_at >= :since",
        {"repository": repository, "since": keep_since},
    )
    return {head for (head,) in rows}


def find_dead(db: sqlite3.Connection, live: Live) -> Unreachable:
    """Name the rows of what is not live."""
    written = db.execute("SELECT repository, id FROM commits").fetchall()
    return Unreachable(
        commits=[each for each in written if each not in live.commits],
        trees=_others(db, "SELECT id FROM trees", live.trees),
        ranges=_others(db, "SELECT id FROM ranges", live.ranges),
        objects=_others(db, "SELECT digest FROM objects", live.objects),
    )


def forget(db: sqlite3.Connection, dead: Unreachable, keep_since: float) -> None:
    """Delete the rows; from now on the files of dead objects are not trusted any more."""
    db.executemany("DELETE FROM commits WHERE repository = ? AND id = ?", dead.commits)
    db.executemany("DELETE FROM trees WHERE id = ?", dead.trees)
    db.executemany("DELETE FROM ranges WHERE id = ?", dead.ranges)
    db.executemany("DELETE FROM objects WHERE digest = ?", dead.objects)
    db.execute("DELETE FROM departed WHERE at < ?", (keep_since,))


def _others(db: sqlite3.Connection, query: str, live: set[str]) -> list[tuple[str]]:
    return [(name,) for (name,) in db.execute(query) if name not in live]


def sweep(objects: ObjectDirectory, live: set[str], *, dry_run: bool) -> tuple[int, int, int]:
    """Remove files that are not live; returns objects, incoming files and bytes.

    Only while uploads are kept away: then whatever is in ``incoming`` was left by the dead.
    """
    dead = [path for digest, path in objects.stored() if digest not in live]
    stale = objects.arriving()
    freed = sum(path.lstat().st_size for path in (*dead, *stale))
    if not dry_run:
        for path in (*dead, *stale):
            objects.discard(path)
    return len(dead), len(stale), freed
