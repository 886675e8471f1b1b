"""The ``Store`` port on lakeFS (rules D, S, P, N, K1, K3, K4).

Nothing of an attempt is remembered here: every call carries all it needs (S4, W3). What is kept
between calls is what never changes: commits by their id, listings of commits, contents.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from perago.errors import (
    NotFoundError,
    PublishFenceError,
    StoreError,
    UnpublishableFileError,
)
from perago.ports import Advance, Damage, Fetch, Patience, Publication, Published, Put
from perago.protocol.kinds import FenceKind
from perago.protocol.paths import ACTIONS, is_action
from perago.protocol.publication import Merge, Relocate
from perago.protocol.recovery import wanted_by
from perago.protocol.values import (
    ChangeSet,
    Commit,
    Entry,
    ObjectInfo,
    StagedWorkspace,
    Staging,
    WorkspaceInput,
)
from perago.settings import LakeFSSettings
from perago.stores.lakefs import checking, moves, sealing
from perago.stores.lakefs.client import PAGE, Ask, LakeFSClient
from perago.stores.lakefs.commits import Commits
from perago.stores.lakefs.errors import Call
from perago.stores.lakefs.hard import HardFence, refuse_relocation
from perago.stores.lakefs.in_place import LakeFSInPlace
from perago.stores.lakefs.manifests import Manifests
from perago.stores.lakefs.proving import FenceProof
from perago.stores.lakefs.tags import checksum_of
from perago.stores.lakefs.transports import Transports
from perago.transfer import parallel
from perago.transfer.cache import ContentCache
from perago.transfer.wire import path_of

TRANSFERS = 32
FIRST_TRANSFERS = 16
BULK = 1000
DROP_SECONDS = 15.0
LEAST_SECONDS = 0.2


class LakeFSStore:
    """One lakeFS server; threads may share it."""

    kind = "lakefs"
    checksum = "md5"

    def __init__(self, settings: LakeFSSettings, cache: ContentCache, manifests: Manifests) -> None:
        self.client = LakeFSClient(settings, TRANSFERS)
        self._limit = parallel.ConcurrencyLimit(TRANSFERS, FIRST_TRANSFERS)
        self._transports = Transports(settings, self.client, self._limit)
        self.direct = LakeFSInPlace(settings, self.client, manifests)
        self._cache = cache
        self._manifests = manifests
        self._commits = Commits()
        self._proving = FenceProof(self.client)
        self._hard = HardFence(self.client, self.head)

    # --- reading ----------------------------------------------------------------------------

    def commit(self, repository: str, ref: str) -> Commit:
        return self._resolve(repository, ref, None)

    def head(self, repository: str, branch: str, timeout_seconds: float | None = None) -> Commit:
        path = path_of("repositories", repository, "branches", branch)
        until = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        found = self.client.ask(_read(f"read branch {branch} of {repository}", path, until))
        return self._resolve(repository, found["commit_id"], until)

    def _resolve(self, repository: str, ref: str, until: float | None) -> Commit:
        return self._commits.find(repository, ref, lambda: self._ask(repository, ref, until))

    def _ask(self, repository: str, ref: str, until: float | None) -> Commit:
        path = path_of("repositories", repository, "commits", ref)
        return _commit(self.client.ask(_read(f"read commit {ref} of {repository}", path, until)))

    def dirty(self, repository: str, branch: str) -> bool:
        path = path_of("repositories", repository, "branches", branch, "diff")
        ask = Ask(f"read changes of {branch} of {repository}", "GET", path, query={"amount": 1})
        return bool(self.client.ask(ask)["results"])

    def history(self, repository: str, ref: str) -> Iterator[Commit]:
        path = path_of("repositories", repository, "refs", ref, "commits")
        ask = Ask(f"read log of {ref} of {repository}", "GET", path, query={"first_parent": True})
        return map(_commit, self.client.pages(ask))

    def listing(self, repository: str, ref: str, root: str) -> Iterable[ObjectInfo]:
        whole = self.commit(repository, ref).id == ref
        known = self._manifests.listing(repository, ref, root) if whole else None
        if known is not None:
            return known
        path = path_of("repositories", repository, "refs", ref, "objects", "ls")
        ask = Ask(f"list objects of {ref} of {repository}", "GET", path, query={"prefix": root})
        found = [_info(item) for item in self.client.pages(ask)]
        if whole:
            self._manifests.remember(repository, ref, root, found)
        return found

    @property
    def readers(self) -> int:
        return TRANSFERS

    def page(
        self, repository: str, ref: str, root: str, after: str, limit: int
    ) -> Sequence[ObjectInfo]:
        path = path_of("repositories", repository, "refs", ref, "objects", "ls")
        query = {"prefix": root, "after": after, "amount": min(limit, PAGE)}
        ask = Ask(f"list objects of {ref} of {repository}", "GET", path, query=query)
        return [_info(item) for item in islice(self.client.pages(ask), limit)]

    def check(self, repository: str, ref: str, info: ObjectInfo, scratch: Path) -> Damage | None:
        with self._limit.turn():
            return checking.check(self._transports.of(repository, ref), ref, info, scratch)

    def diff(self, repository: str, left: str, right: str, root: str) -> ChangeSet:
        path = path_of("repositories", repository, "refs", left, "diff", right)
        query = {"prefix": root, "type": "two_dot"}
        ask = Ask(f"diff {left} and {right}", "GET", path, query=query)
        return moves.change_set(self.client.pages(ask))

    def diff_page(
        self, repository: str, left: str, right: str, root: str, after: str, limit: int
    ) -> ChangeSet:
        path = path_of("repositories", repository, "refs", left, "diff", right)
        query = {"prefix": root, "type": "two_dot", "after": after, "amount": min(limit, PAGE)}
        ask = Ask(f"diff {left} and {right}", "GET", path, query=query)
        return moves.change_set(islice(self.client.pages(ask), limit))

    def beginning(self, repository: str, ref: str, key: str, most: int) -> bytes:
        path = path_of("repositories", repository, "refs", ref, "objects")
        with self.client.body(f"read object {key!a}", path, {"path": key}) as answer:
            found: bytes = answer.read(most, decode_content=False)
            answer.close()  # Half read: nobody else may have this connection.
        return found

    def fetch(self, repository: str, ref: str, wanted: Sequence[Fetch], advance: Advance) -> None:
        transport = self._transports.of(repository, ref)

        def bring(fetch: Fetch, report: Advance) -> None:
            with self._limit.turn():
                transport.download(ref, fetch, report, self._cache)

        size = sum(fetch.entry.size for fetch in wanted)
        local = parallel.local_threads(len(wanted), size)
        with self._cache.reading(fetch.entry for fetch in wanted) as known:
            here = parallel.each(
                wanted,
                lambda fetch, report: known.fetch(fetch.entry, fetch.to, report),
                advance,
                threads=local,
            )
        missing = [fetch for fetch, found in zip(wanted, here, strict=True) if not found]
        try:
            parallel.each(missing, bring, advance, threads=TRANSFERS)
        finally:
            self._cache.settle()

    def content(self, entry: Entry) -> Entry:
        return self._cache.content(entry)

    # --- staging ----------------------------------------------------------------------------

    def open_staging(self, staging: Staging, at: str) -> None:
        path = path_of("repositories", staging.repository, "branches")
        body = {"name": staging.branch, "source": at, "hidden": True}
        self.client.ask(Ask("create branch", "POST", path, Call.CREATE, body=body, plain=True))
        self._manifests.begin(staging.repository, staging.branch, at)

    def write(
        self, staging: Staging, puts: Sequence[Put], deletes: Sequence[str], advance: Advance
    ) -> None:
        _refuse_actions((*(put.key for put in puts), *deletes))
        transport = self._transports.of(staging.repository, staging.branch)

        def send(put: Put, report: Advance) -> None:
            with self._limit.turn():
                content = transport.upload(staging.branch, put, report)
            if content is None:
                self._cache.keep(put.entry, put.source, put.opens)
            else:
                self._cache.put(put.entry, content)

        try:
            parallel.each(puts, send, advance, threads=TRANSFERS)
        finally:
            self._cache.settle()
        for start in range(0, len(deletes), BULK):
            self._delete(staging, deletes[start : start + BULK])
        rows = [(put.key, put.entry.size, put.entry.checksum) for put in puts]
        self._manifests.extend(staging.repository, staging.branch, rows, deletes)

    def seal(
        self,
        staging: Staging,
        message: str,
        metadata: Mapping[str, str],
        patience: Patience = Patience(),  # noqa: B008 - a constant
    ) -> StagedWorkspace:
        path = path_of("repositories", staging.repository, "branches", staging.branch, "commits")
        body = {"message": message, "metadata": dict(metadata)}
        branch = sealing.StagingBranch(
            commit=lambda ask: _commit(self.client.ask(ask)),
            head=lambda seconds: self.head(staging.repository, staging.branch, seconds),
            execution_id=metadata.get("perago.execution_id"),
        )
        ask = Ask("commit staging branch", "POST", path, Call.CREATE, body=body)
        sealed = sealing.seal(branch, ask, patience)
        self._commits.keep(staging.repository, sealed)
        self._manifests.seal(staging.repository, staging.branch, sealed.id)
        return StagedWorkspace(staging.repository, staging.branch, sealed.id)

    def drop(self, staging: Staging) -> None:
        path = path_of("repositories", staging.repository, "branches", staging.branch)
        try:
            ask = Ask("delete branch", "DELETE", path, Call.PRIVATE, timeout_seconds=DROP_SECONDS)
            self.client.ask(ask)
        except NotFoundError:
            return

    # --- publishing -------------------------------------------------------------------------

    def prove(self, workspace: WorkspaceInput, fence: FenceKind) -> None:
        if fence == "hard":
            self._proving.prove(workspace)

    def finished_head(self, repository: str, branch: str) -> Commit:
        return self._hard.finish(repository, branch)

    def apply(self, publication: Publication) -> Published:
        decision = publication.decision
        source = wanted_by(decision)
        if publication.fence == "hard":
            self._proving.covers(publication.repository, source, publication.branch)
            if isinstance(decision, Relocate):
                refuse_relocation(self.commit(publication.repository, source))
            published = self._hard.apply(publication)
        elif isinstance(decision, Merge):
            published = Published(self._merge(publication, decision), publication.fence)
        else:
            self._reset(publication, source)
            published = Published(source, publication.fence)
        if isinstance(decision, Merge):
            self._read_soon(publication.repository, published.ref)
        else:
            self._manifests.publish(publication.repository, source, source)
        return published

    def note_same(self, repository: str, ref: str, source: str) -> None:
        self._manifests.publish(repository, ref, source)

    def way(self, repository: str) -> str:
        """Return how object bytes travel, once some have."""
        return self._transports.way(repository)

    def close(self) -> None:
        """Close connections."""
        self.client.close()
        self._cache.close()
        self._manifests.close()

    # --- requests ---------------------------------------------------------------------------

    def _read_soon(self, repository: str, ref: str) -> None:
        """Ask for a merge that is about to be looked at; the branch is read at the same time."""
        self._commits.prefetch(repository, ref, lambda: self._ask(repository, ref, None))

    def _merge(self, publication: Publication, decision: Merge) -> str:
        body = {
            "message": publication.message,
            "metadata": dict(publication.metadata),
            "squash_merge": True,
        }
        where = publication.repository, decision.source, publication.branch
        ask = moves.merge(*where, body, publication.timeout_seconds)
        return str(self.client.ask(ask)["reference"])

    def _reset(self, publication: Publication, ref: str) -> None:
        if self.dirty(publication.repository, publication.branch):
            # P4: unlike a merge, the server's hard reset would go ahead under them.
            raise PublishFenceError(
                f"branch {publication.branch!r} of {publication.repository!r} has uncommitted"
                " changes",
                remedy="commit or reset them, then run the task again",
            )
        where = publication.repository, publication.branch
        self.client.ask(moves.hard_reset(*where, ref, publication.timeout_seconds))

    def _delete(self, staging: Staging, keys: Sequence[str]) -> None:
        path = path_of(
            "repositories", staging.repository, "branches", staging.branch, "objects", "delete"
        )
        body = {"paths": list(keys)}
        failed = self.client.ask(Ask("delete objects", "POST", path, Call.PRIVATE, body=body))
        if failed and failed.get("errors"):
            first = failed["errors"][0]
            raise StoreError(
                f"object {first.get('path')!a} cannot be deleted: {first.get('message')}",
                remedy="check the permissions of the worker's key",
            )


def _refuse_actions(keys: Iterable[str]) -> None:
    """Keep tasks from the server's hooks, the fence among them (S3)."""
    for key in keys:
        if is_action(key):
            raise UnpublishableFileError(
                f"object {key!a} lies under {ACTIONS}/, which no task may write",
                remedy="choose another directory",
            )


def _read(what: str, path: str, until: float | None) -> Ask:
    """Ask a question; one that must be answered until some time is asked only once."""
    if until is None:
        return Ask(what, "GET", path)
    left = max(until - time.monotonic(), LEAST_SECONDS)
    return Ask(what, "GET", path, timeout_seconds=left, once=True)


def _commit(found: Mapping[str, Any]) -> Commit:
    return Commit(
        id=found["id"],
        parents=tuple(found["parents"]),
        message=found["message"],
        metadata=dict(found.get("metadata") or {}),
        created_at=float(found["creation_date"]),
        tree=str(found.get("meta_range_id") or ""),
    )


def _info(found: Mapping[str, Any]) -> ObjectInfo:
    return ObjectInfo(
        key=found["path"],
        size=int(found.get("size_bytes", 0)),
        checksum=checksum_of(str(found.get("checksum", "")), found.get("metadata")),
        kind=found["path_type"],
    )
