"""The read side of the store: nothing here changes anything."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from perago.errors import NotFoundError, StoreUnavailableError
from perago.ports import Advance, Damage, Fetch
from perago.protocol.values import ChangeSet, Commit, Entry, ObjectInfo
from perago.stores.embedded import commits, delivering, ranges, refs, snapshots, trees
from perago.stores.embedded.catalogue import Catalogue
from perago.stores.embedded.objects import ObjectDirectory
from perago.stores.embedded.refs import BranchInfo
from perago.transfer import parallel


class StoreReader:
    """Commits, listings, differences and contents."""

    def __init__(self, root: Path) -> None:
        self.root = root
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._objects = ObjectDirectory(root)
        except OSError as error:
            raise StoreUnavailableError(
                f"no store can be kept at {root}: {error.strerror}",
                remedy="name a directory that this user may write to",
            ) from error
        self._catalogue = Catalogue(root / "catalogue.sqlite")

    @property
    def checksum(self) -> str:
        return ranges.ALGORITHM

    def content(self, entry: Entry) -> Entry:
        """Say the same: every checksum here is one of the content."""
        return entry

    @property
    def direct(self) -> None:
        """Offer nothing: its objects can only be had through it."""

    def repositories(self) -> tuple[str, ...]:
        """List repositories by name."""
        with self._catalogue.reading() as db:
            rows = db.execute("SELECT name FROM repositories ORDER BY name")
            return tuple(name for (name,) in rows)

    def default_branch(self, repository: str) -> str:
        """Name the branch a repository begins with."""
        with self._catalogue.reading() as db:
            refs.require_repository(db, repository)
            query = "SELECT default_branch FROM repositories WHERE name = ?"
            return str(db.execute(query, (repository,)).fetchone()[0])

    def branches(self, repository: str, *, hidden: bool = False) -> tuple[BranchInfo, ...]:
        """List branches by name; ``hidden`` adds the staging branches."""
        with self._catalogue.reading() as db:
            return refs.listed(db, repository, hidden=hidden)

    def commit(self, repository: str, ref: str) -> Commit:
        with self._catalogue.reading() as db:
            return commits.read(db, repository, refs.resolve(db, repository, ref)).commit

    def head(
        self,
        repository: str,
        branch: str,
        timeout_seconds: float | None = None,  # noqa: ARG002 - nothing here can hang
    ) -> Commit:
        with self._catalogue.reading() as db:
            return commits.read(db, repository, refs.head(db, repository, branch)).commit

    def dirty(self, repository: str, branch: str) -> bool:
        with self._catalogue.reading() as db:
            refs.head(db, repository, branch)
            return refs.is_dirty(db, repository, branch)

    def history(self, repository: str, ref: str) -> Iterator[Commit]:
        return self._walk(repository, self.commit(repository, ref))

    def listing(self, repository: str, ref: str, root: str) -> Iterator[ObjectInfo]:
        tree = self._tree(repository, ref)
        return (
            ObjectInfo(key, entry.size, entry.checksum)
            for key, entry in trees.scan(tree, self._load, root)
        )

    @property
    def readers(self) -> int:
        return os.cpu_count() or 1

    def page(
        self, repository: str, ref: str, root: str, after: str, limit: int
    ) -> Sequence[ObjectInfo]:
        tree = tuple(each for each in self._tree(repository, ref) if each.last > after)
        found = (
            ObjectInfo(key, entry.size, entry.checksum)
            for key, entry in trees.scan(tree, self._load, root)
            if key > after
        )
        return list(islice(found, limit))

    def check(
        self,
        repository: str,  # noqa: ARG002 - contents are shared by all repositories and commits
        ref: str,  # noqa: ARG002 - as above
        info: ObjectInfo,
        scratch: Path,  # noqa: ARG002 - read in place
    ) -> Damage | None:
        return delivering.check(self._objects, info)

    def diff(self, repository: str, left: str, right: str, root: str) -> ChangeSet:
        before, after = self._tree(repository, left), self._tree(repository, right)
        return _change_set(list(trees.diff(before, after, self._load, root)))

    def diff_page(
        self, repository: str, left: str, right: str, root: str, after: str, limit: int
    ) -> ChangeSet:
        # What ends before ``after`` holds no key behind it, in either version.
        before, behind = (
            tuple(each for each in self._tree(repository, ref) if each.last > after)
            for ref in (left, right)
        )
        changes = (c for c in trees.diff(before, behind, self._load, root) if c.key > after)
        return _change_set(list(islice(changes, limit)))

    def fetch(self, repository: str, ref: str, wanted: Sequence[Fetch], advance: Advance) -> None:
        held = self._lookup(repository, ref, [each.key for each in wanted])
        for each in wanted:
            if held[each.key] != each.entry:
                raise delivering.corrupt(each.key, f"is {held[each.key]}, not {each.entry}")
        size = sum(each.entry.size for each in wanted)
        threads = parallel.local_threads(len(wanted), size)
        parallel.each(wanted, partial(delivering.deliver, self._objects), advance, threads=threads)

    def open_object(self, repository: str, ref: str, key: str) -> BinaryIO:
        """Open one object for reading; the caller closes it. Not verified: ``fetch`` is."""
        entry = self._lookup(repository, ref, [key])[key]
        return os.fdopen(delivering.open_object(self._objects, key, entry), "rb")

    def beginning(self, repository: str, ref: str, key: str, most: int) -> bytes:
        with self.open_object(repository, ref, key) as file:
            return file.read(most)

    def close(self) -> None:
        """Close what this thread holds open; the store can still be used."""
        self._catalogue.close()

    def _walk(self, repository: str, start: Commit) -> Iterator[Commit]:
        commit = start
        yield commit
        while commit.parent is not None:
            with self._catalogue.reading() as db:
                commit = commits.read(db, repository, commit.parent).commit
            yield commit

    def _tree(self, repository: str, ref: str) -> trees.Tree:
        with self._catalogue.reading() as db:
            record = commits.read(db, repository, refs.resolve(db, repository, ref))
            return snapshots.read(db, record.tree)

    def _load(self, range_id: str) -> bytes:
        """Read one range: a listing holds no transaction open between two of them."""
        with self._catalogue.reading() as db:
            return snapshots.loader(db)(range_id)

    def _lookup(self, repository: str, ref: str, keys: Sequence[str]) -> dict[str, Entry]:
        held = trees.find(self._tree(repository, ref), self._load, keys)
        for key in keys:
            if key not in held:
                raise NotFoundError(
                    f"no object {key!a} at {ref} in repository {repository!r}",
                    remedy="list the keys of that commit and correct the name",
                )
        return held


def _change_set(found: Sequence[trees.KeyChange]) -> ChangeSet:
    return ChangeSet(
        added=tuple(each.key for each in found if each.before is None),
        changed=tuple(each.key for each in found if each.before and each.after),
        removed=tuple(each.key for each in found if each.after is None),
    )
