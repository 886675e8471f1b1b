"""Repositories, branches and what names a commit."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass

from perago.errors import (
    RESTART,
    AlreadyExistsError,
    LostRaceError,
    NotFoundError,
    PublishFenceError,
    UsageError,
)
from perago.stores import names

_SHORT_ID = re.compile(r"[0-9a-f]{6,63}")


@dataclass(frozen=True, slots=True)
class BranchInfo:
    """A branch as listings show it; hidden ones belong to attempts."""

    name: str
    head: str
    hidden: bool
    created_at: float


def require_repository(db: sqlite3.Connection, repository: str) -> None:
    """Raise when there is no such repository."""
    found = db.execute("SELECT 1 FROM repositories WHERE name = ?", (repository,)).fetchone()
    if found is None:
        raise NotFoundError(
            f"repository {repository!r} does not exist in this store",
            remedy="create it first, or correct the name",
        )


def find_head(db: sqlite3.Connection, repository: str, branch: str) -> str | None:
    """Read the head of a branch, or None when there is no such branch."""
    row = db.execute(
        "SELECT head FROM branches WHERE repository = ? AND name = ?", (repository, branch)
    ).fetchone()
    return None if row is None else str(row[0])


def head(db: sqlite3.Connection, repository: str, branch: str) -> str:
    """Read the head of a branch."""
    found = find_head(db, repository, branch)
    if found is None:
        require_repository(db, repository)
        raise NotFoundError(
            f"branch {branch!r} does not exist in repository {repository!r}",
            remedy="create it first, or correct the name",
        )
    return found


def expect_head(db: sqlite3.Connection, repository: str, branch: str, expected: str | None) -> str:
    """Read the head inside the transaction that will move it: this is the compare in the set."""
    found = head(db, repository, branch)
    if expected is not None and found != expected:
        raise LostRaceError(
            f"branch {branch!r} of {repository!r} is at {found}, expected {expected}",
            remedy=f"nothing was written; {RESTART}",
        )
    return found


def is_dirty(db: sqlite3.Connection, repository: str, branch: str) -> bool:
    """Return whether a branch has uncommitted changes."""
    found = db.execute(
        "SELECT 1 FROM changes WHERE repository = ? AND branch = ? LIMIT 1", (repository, branch)
    )
    return found.fetchone() is not None


def refuse_dirty(db: sqlite3.Connection, repository: str, branch: str) -> None:
    """Raise when a branch has uncommitted changes (P4)."""
    if is_dirty(db, repository, branch):
        raise PublishFenceError(
            f"branch {branch!r} of {repository!r} has uncommitted changes",
            remedy="commit or reset the uncommitted changes, then run the task again",
        )


def resolve(db: sqlite3.Connection, repository: str, ref: str) -> str:
    """Find the commit id that a full id, a branch or a unique short id names, in this order."""
    full = db.execute(
        "SELECT id FROM commits WHERE repository = ? AND id = ?", (repository, ref)
    ).fetchone()
    if full is not None:
        return ref
    if (found := find_head(db, repository, ref)) is not None:
        return found
    require_repository(db, repository)
    candidates = _by_prefix(db, repository, ref) if _SHORT_ID.fullmatch(ref) else []
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        raise NotFoundError(
            f"{ref!r} names more than one commit of repository {repository!r}",
            remedy="give more characters of the commit id",
        )
    raise NotFoundError(
        f"no branch or commit {ref!r} in repository {repository!r}",
        remedy="give a branch, a commit id, or at least 6 characters of one",
    )


def _by_prefix(db: sqlite3.Connection, repository: str, prefix: str) -> list[str]:
    rows = db.execute(
        "SELECT id FROM commits WHERE repository = ? AND id >= ? AND id < ? LIMIT 2",
        (repository, prefix, prefix + "g"),
    )
    return [str(row[0]) for row in rows]


def create(db: sqlite3.Connection, repository: str, branch: BranchInfo) -> None:
    """Add a branch; the name must be free (S1)."""
    names.check_branch(branch.name)
    if find_head(db, repository, branch.name) is not None:
        raise AlreadyExistsError(
            f"branch {branch.name!r} already exists in repository {repository!r}",
            remedy="choose another name, or delete that branch first",
        )
    db.execute(
        "INSERT INTO branches VALUES (?, ?, ?, ?, ?)",
        (repository, branch.name, branch.head, branch.hidden, branch.created_at),
    )


def move(db: sqlite3.Connection, repository: str, branch: str, to: str) -> None:
    """Let a branch point elsewhere."""
    db.execute(
        "UPDATE branches SET head = ? WHERE repository = ? AND name = ?", (to, repository, branch)
    )


def depart(db: sqlite3.Connection, repository: str, old: str, now: float) -> None:
    """Remember a head that history may no longer hold, so that it outlives the retention (P10)."""
    db.execute("INSERT INTO departed VALUES (?, ?, ?)", (repository, old, now))


def discard_changes(db: sqlite3.Connection, repository: str, branch: str) -> None:
    """Forget the uncommitted changes of a branch."""
    db.execute("DELETE FROM changes WHERE repository = ? AND branch = ?", (repository, branch))


def delete(db: sqlite3.Connection, repository: str, branch: str, now: float) -> None:
    """Remove a branch and its uncommitted changes; the default branch stays."""
    old = head(db, repository, branch)
    default = db.execute(
        "SELECT 1 FROM repositories WHERE name = ? AND default_branch = ?", (repository, branch)
    )
    if default.fetchone() is not None:
        raise UsageError(
            f"{branch!r} is the default branch of {repository!r} and cannot be deleted",
            remedy="reset it instead",
        )
    discard_changes(db, repository, branch)
    db.execute("DELETE FROM branches WHERE repository = ? AND name = ?", (repository, branch))
    depart(db, repository, old, now)


def listed(db: sqlite3.Connection, repository: str, *, hidden: bool) -> tuple[BranchInfo, ...]:
    """List branches by name; the hidden ones on request."""
    require_repository(db, repository)
    rows = db.execute(
        "SELECT name, head, hidden, created_at FROM branches "
        "WHERE repository = ? AND hidden <= ? ORDER BY name",
        (repository, hidden),
    )
    return tuple(BranchInfo(name, at, bool(flag), born) for name, at, flag, born in rows)
