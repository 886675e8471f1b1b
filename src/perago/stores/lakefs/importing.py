"""A directory of files becomes one commit on a branch of lakeFS, as on the embedded store."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from perago.errors import PublishFenceError, UnpublishableFileError
from perago.ports import Publication, Put
from perago.protocol.kinds import FenceKind
from perago.protocol.publication import Merge
from perago.protocol.values import Commit, Entry, Staging
from perago.stores import names
from perago.stores.importing import files_below
from perago.stores.lakefs.action import branches_of
from perago.stores.lakefs.proving import FenceProof, scratch_name
from perago.stores.lakefs.store import LakeFSStore
from perago.transfer.copying import stream

SECONDS = 60.0


def import_directory(
    store: LakeFSStore,
    repository: str,
    branch: str,
    directory: Path,
    message: str,
    metadata: Mapping[str, str],
) -> Commit:
    """Put every file below a directory under its relative path, and commit what is new.

    The files go to a scratch branch first, so that the branch moves once or not at all. A scratch
    branch whose maker died is removed by ``perago gc --repo``.
    """
    head = store.finished_head(repository, branch)
    if store.dirty(repository, branch):
        raise PublishFenceError(
            f"branch {branch!r} of {repository!r} has uncommitted changes",
            remedy="commit or reset them, then run it again",
        )
    new = list(_new(store, repository, head.id, directory))
    if not new:
        return head
    scratch = Staging(repository, scratch_name())
    store.open_staging(scratch, head.id)
    try:
        store.write(scratch, new, [], lambda _: None)
        decision = Merge(head.id, store.seal(scratch, message, metadata).commit)
        fence = _fence(store, repository, head.id, branch)
        merge = Publication(repository, branch, decision, fence, message, metadata, SECONDS)
        return store.commit(repository, store.apply(merge).ref)
    finally:
        store.drop(scratch)


def _fence(store: LakeFSStore, repository: str, ref: str, branch: str) -> FenceKind:
    """Use the hard fence where its action is: the server refuses every other merge there."""
    action = FenceProof(store.client).action(repository, ref)
    protected = branches_of(action) if action is not None else None
    return "hard" if branch in (protected or ()) else "head"


def _new(store: LakeFSStore, repository: str, ref: str, directory: Path) -> Iterator[Put]:
    """Find the files that the branch does not hold as they are here."""
    known = {
        info.key: Entry(info.size, info.checksum) for info in store.listing(repository, ref, "")
    }
    for key, path in files_below(directory):
        names.check_key(key)
        entry, listed = _entry(path, store.checksum), known.get(key)
        if listed is None or entry not in {listed, store.content(listed)}:
            yield Put(key, entry, path)


def _entry(path: Path, algorithm: str) -> Entry:
    try:
        source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return stream(source, None, lambda _: None, algorithm)
        finally:
            os.close(source)
    except OSError as error:
        raise UnpublishableFileError(
            f"file {str(path)!a} cannot be read: {error.strerror}",
            remedy="make it readable, or leave it out",
        ) from None
