"""Commits: immutable, named by everything they say."""

from __future__ import annotations

import heapq
import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from perago.errors import NotFoundError
from perago.protocol.values import Commit
from perago.redaction import hidden_words, hide
from perago.stores.embedded.ranges import digest

_COLUMNS = "id, parents, message, metadata, created_at, tree, generation"
_MINE, _THEIRS = 1, 2


@dataclass(frozen=True, slots=True)
class CommitNote:
    """What a commit says besides its content."""

    message: str
    metadata: Mapping[str, str]
    created_at: float


@dataclass(frozen=True, slots=True)
class Record:
    """A commit with what only this store knows of it."""

    commit: Commit
    tree: str
    generation: int


def commit_id(repository: str, tree: str, parents: tuple[str, ...], note: CommitNote) -> str:
    """Hash the canonical form of a commit."""
    said = {
        "created_at": repr(note.created_at),
        "message": note.message,
        "metadata": dict(note.metadata),
        "parents": parents,
        "repository": repository,
        "tree": tree,
    }
    return digest(json.dumps(said, sort_keys=True, separators=(",", ":")).encode())


def add(
    db: sqlite3.Connection,
    repository: str,
    tree: str,
    parents: tuple[Record, ...],
    note: CommitNote,
) -> Record:
    """Write a commit; nothing points to it yet."""
    note = CommitNote(hide(note.message), hidden_words(note.metadata), note.created_at)
    ids = tuple(parent.commit.id for parent in parents)
    metadata = dict(note.metadata)
    commit = Commit(
        commit_id(repository, tree, ids, note), ids, note.message, metadata, note.created_at
    )
    generation = 1 + max((parent.generation for parent in parents), default=0)
    db.execute(
        f"INSERT OR IGNORE INTO commits (repository, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
        (
            repository,
            commit.id,
            json.dumps(ids),
            note.message,
            json.dumps(metadata, sort_keys=True),
            note.created_at,
            tree,
            generation,
        ),
    )
    return Record(commit, tree, generation)


def read(db: sqlite3.Connection, repository: str, full_id: str) -> Record:
    """Read a commit by its full id."""
    row = db.execute(
        f"SELECT {_COLUMNS} FROM commits WHERE repository = ? AND id = ?",  # noqa: S608
        (repository, full_id),
    ).fetchone()
    if row is None:
        raise NotFoundError(
            f"no commit {full_id!r} in repository {repository!r}",
            remedy="it may have been removed after its retention; start from a branch head",
        )
    name, parents, message, metadata, created_at, tree, generation = row
    commit = Commit(name, tuple(json.loads(parents)), message, json.loads(metadata), created_at)
    return Record(commit, tree, generation)


def ancestry(db: sqlite3.Connection, repository: str, start: set[str]) -> Iterator[Record]:
    """Walk every commit reachable through any parent, each once; missing ones are skipped."""
    seen = set(start)
    waiting = sorted(start)
    while waiting:
        try:
            record = read(db, repository, waiting.pop())
        except NotFoundError:
            continue
        yield record
        for parent in record.commit.parents:
            if parent not in seen:
                seen.add(parent)
                waiting.append(parent)


def merge_base(db: sqlite3.Connection, repository: str, mine: str, theirs: str) -> Record | None:
    """Find a best common ancestor: the highest generation that both sides reach.

    No ancestor of a commit has its generation or more, so the first that is met from both sides
    cannot lie below another.
    """
    sides = {mine: _MINE}
    sides[theirs] = sides.get(theirs, 0) | _THEIRS
    queue: list[tuple[int, str]] = []
    records: dict[str, Record] = {}

    def visit(full_id: str) -> None:
        records[full_id] = read(db, repository, full_id)
        heapq.heappush(queue, (-records[full_id].generation, full_id))

    for start in dict.fromkeys((mine, theirs)):
        visit(start)
    while queue:
        _, full_id = heapq.heappop(queue)
        if sides[full_id] == _MINE | _THEIRS:
            return records[full_id]
        for parent in records[full_id].commit.parents:
            sides[parent] = sides.get(parent, 0) | sides[full_id]
            if parent not in records:
                visit(parent)
    return None
