"""What moves a branch. Each function runs inside one write transaction of the caller."""

from __future__ import annotations

import sqlite3

from perago.errors import StoreError
from perago.ports import Publication
from perago.protocol.publication import Merge, Relocate
from perago.stores.embedded import commits, refs, snapshots
from perago.stores.embedded.commits import CommitNote, Record


def commit_changes(
    db: sqlite3.Connection,
    repository: str,
    branch: str,
    note: CommitNote,
    *,
    allow_empty: bool = False,
) -> Record | None:
    """Turn the uncommitted changes of a branch into a commit; None when they change nothing.

    The branch is clean afterwards either way: changes that say nothing new must not block it.
    """
    parent = commits.read(db, repository, refs.head(db, repository, branch))
    tree = snapshots.edited(db, parent.tree, snapshots.uncommitted(db, repository, branch))
    refs.discard_changes(db, repository, branch)
    if tree == parent.tree and not allow_empty:
        return None
    record = commits.add(db, repository, tree, (parent,), note)
    refs.move(db, repository, branch, record.commit.id)
    return record


def merge(
    db: sqlite3.Connection,
    repository: str,
    branch: str,
    source: str,
    note: CommitNote,
    *,
    squash: bool,
) -> Record:
    """Merge a commit into a clean branch; an empty merge is refused (G1)."""
    refs.refuse_dirty(db, repository, branch)
    ours = commits.read(db, repository, refs.head(db, repository, branch))
    theirs = commits.read(db, repository, source)
    tree = snapshots.merged(db, repository, ours, theirs)
    if tree == ours.tree:
        raise StoreError(
            f"merging {source} into branch {branch!r} of {repository!r} changes nothing",
            remedy="keep the head as it is: an empty commit is not made",
        )
    parents = (ours,) if squash else (ours, theirs)
    record = commits.add(db, repository, tree, parents, note)
    refs.move(db, repository, branch, record.commit.id)
    return record


def relocate(db: sqlite3.Connection, repository: str, branch: str, to: str, now: float) -> None:
    """Point a branch at a commit that exists; where it was is kept for the retention (P10)."""
    target = commits.read(db, repository, to).commit.id
    refs.depart(db, repository, refs.head(db, repository, branch), now)
    refs.move(db, repository, branch, target)


def apply(db: sqlite3.Connection, publication: Publication, now: float) -> str:
    """Carry out a decision if the head is still the one it was made for (P8)."""
    repository, branch = publication.repository, publication.branch
    decision = publication.decision
    refs.expect_head(db, repository, branch, decision.head)
    refs.refuse_dirty(db, repository, branch)
    if isinstance(decision, Merge):
        note = CommitNote(publication.message, publication.metadata, now)
        merged = merge(db, repository, branch, decision.source, note, squash=True)
        return merged.commit.id
    to = decision.to if isinstance(decision, Relocate) else decision.source
    relocate(db, repository, branch, to, now)
    return to
