"""Looking into a store, and checking that all of it hangs together."""

from __future__ import annotations

import hashlib
import sqlite3
import stat
from pathlib import Path

from perago.stores.embedded import EmbeddedStore


def tree(store: EmbeddedStore, repository: str, ref: str) -> dict[str, bytes]:
    """Read everything at a ref."""
    found = {}
    for info in store.listing(repository, ref, ""):
        with store.open_object(repository, ref, info.key) as opened:
            found[info.key] = opened.read()
    return found


def check(store: EmbeddedStore) -> None:
    """Every head resolves, every tree can be read, every object is present, right and locked."""
    for path in check_objects(store):
        assert stat.S_IMODE(path.stat().st_mode) == 0o400


def check_objects(store: EmbeddedStore) -> list[Path]:
    """Every head resolves, every tree can be read; return the objects, which are whole."""
    db = sqlite3.connect(store.root / "catalogue.sqlite")
    try:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        loose = db.execute("SELECT checksum, size FROM changes WHERE checksum NOTNULL").fetchall()
        recorded = {
            (f"sha256:{digest}", size)
            for digest, size in db.execute("SELECT digest, size FROM objects")
        }
    finally:
        db.close()
    needed = set(loose)
    for repository in store.repositories():
        for branch in store.branches(repository, hidden=True):
            for commit in store.history(repository, branch.head):
                for info in store.listing(repository, commit.id, ""):
                    needed.add((info.checksum, info.size))
    assert needed <= recorded
    return [_checked(store, checksum.removeprefix("sha256:"), size) for checksum, size in needed]


def _checked(store: EmbeddedStore, digest: str, size: int) -> Path:
    path = store.root / "objects" / digest[:2] / digest
    content = path.read_bytes()
    assert len(content) == size
    assert hashlib.sha256(content).hexdigest() == digest
    return path
