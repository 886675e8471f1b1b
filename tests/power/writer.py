"""Does what a store is used for, and says what it was told is done: ``writer.py ROOT``.

Run below the shim, which records every request to the disk.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import sqlite3
import sys
from pathlib import Path

from perago.ports import Publication, Put
from perago.protocol.publication import Merge, Relocate, Replace, Write
from perago.protocol.values import Entry, Staging
from perago.stores.embedded import EmbeddedStore

REPOSITORY, BRANCH = "demo", "main"


def say(store: EmbeddedStore) -> None:
    """Write down that the head of the branch and its tree are promised from now on."""
    head = store.head(REPOSITORY, BRANCH).id
    tree = {info.key: info.checksum for info in store.listing(REPOSITORY, head, "")}
    mark = ctypes.CDLL(None).power_mark
    mark(json.dumps({"head": head, "tree": tree}).encode())


def stage(store: EmbeddedStore, work: Path, name: str, at: str, content: bytes) -> str:
    staging = Staging(REPOSITORY, f"perago-staging-{name}")
    store.open_staging(staging, at)
    file = work / name
    file.write_bytes(content)
    entry = Entry(len(content), f"sha256:{hashlib.sha256(content).hexdigest()}")
    store.write(staging, [Put(f"ws/{name}", entry, file)], ["a"], lambda _: None)
    return store.seal(staging, name, {"perago.execution_id": name}).commit


def publish(store: EmbeddedStore, decision: Write) -> None:
    said = {"perago.expected_head": decision.head}
    where = REPOSITORY, BRANCH
    store.apply(Publication(*where, decision, "head", "published", said, 30.0))
    say(store)


def main(root: Path, work: Path) -> None:
    store = EmbeddedStore(root)
    store.create_repository(REPOSITORY)
    say(store)
    store.put(REPOSITORY, BRANCH, "a", b"first" * 500)
    store.commit_branch(REPOSITORY, BRANCH, "first")
    say(store)
    a = store.head(REPOSITORY, BRANCH).id
    abandoned = stage(store, work, "abandoned", a, b"abandoned" * 1000)
    publish(store, Merge(a, abandoned))
    again = stage(store, work, "again", a, b"abandoned" * 1000)
    publish(store, Replace(store.head(REPOSITORY, BRANCH).id, again))
    store.drop(Staging(REPOSITORY, "perago-staging-abandoned"))
    # The bytes of an object that is promised already, under another name.
    store.put(REPOSITORY, BRANCH, "b", b"abandoned" * 1000)
    store.commit_branch(REPOSITORY, BRANCH, "the same bytes")
    say(store)
    store.close()
    store = EmbeddedStore(root)
    store.remove(REPOSITORY, BRANCH, "b")
    store.commit_branch(REPOSITORY, BRANCH, "one less")
    say(store)
    store.collect(0)
    store.put(REPOSITORY, BRANCH, "b", b"back" * 700)
    store.commit_branch(REPOSITORY, BRANCH, "back")
    say(store)
    with sqlite3.connect(root / "catalogue.sqlite") as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    b = store.head(REPOSITORY, BRANCH).id
    publish(store, Merge(b, stage(store, work, "last", b, b"last" * 900)))
    publish(store, Relocate(store.head(REPOSITORY, BRANCH).id, b))
    store.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
