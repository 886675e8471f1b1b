"""The embedded store: the ``Store`` port, and what people do with branches besides."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from perago.errors import AlreadyExistsError, NothingToCommitError
from perago.ports import Advance, Patience, Publication, Published, Put
from perago.protocol.kinds import FenceKind
from perago.protocol.values import Commit, Entry, StagedWorkspace, Staging, WorkspaceInput
from perago.stores import names
from perago.stores.embedded import (
    collecting,
    commits,
    publishing,
    refs,
    snapshots,
    uploading,
)
from perago.stores.embedded.collecting import CollectionResult
from perago.stores.embedded.commits import CommitNote
from perago.stores.embedded.ranges import hex_of
from perago.stores.embedded.reading import StoreReader
from perago.stores.embedded.refs import BranchInfo
from perago.stores.embedded.uploading import Upload
from perago.stores.importing import files_below
from perago.transfer import parallel

SWEEP_WAIT_SECONDS = 60.0


def _silent(_: int) -> None:
    """Watch nothing."""


def _nothing_to_commit(repository: str, branch: str) -> NothingToCommitError:
    return NothingToCommitError(
        f"branch {branch!r} of {repository!r} has nothing to commit",
        remedy="change something first: an empty commit is not made",
    )


class EmbeddedStore(StoreReader):
    """A versioned store under ``root``; threads and processes may share it.

    ``now`` gives the time that commits are stamped with and that retention is counted from.
    """

    kind = "embedded"

    def __init__(self, root: Path, *, now: Callable[[], float] = time.time) -> None:
        super().__init__(root)
        self._now = now

    # --- the port: what an attempt does -----------------------------------------------------

    def open_staging(self, staging: Staging, at: str) -> None:
        with self._catalogue.writing(durable=False) as db:
            start = refs.resolve(db, staging.repository, at)
            branch = BranchInfo(staging.branch, start, hidden=True, created_at=self._now())
            refs.create(db, staging.repository, branch)

    def write(
        self, staging: Staging, puts: Sequence[Put], deletes: Sequence[str], advance: Advance
    ) -> None:
        uploads = [Upload(put.key, put.source, put.entry, put.opens) for put in puts]
        self._change(staging, uploads, deletes, advance)

    def seal(
        self,
        staging: Staging,
        message: str,
        metadata: Mapping[str, str],
        patience: Patience | None = None,  # noqa: ARG002 - nothing is lost on the way to a file
    ) -> StagedWorkspace:
        note = CommitNote(message, metadata, self._now())
        with self._catalogue.writing(durable=False) as db:
            sealed = publishing.commit_changes(db, staging.repository, staging.branch, note)
        if sealed is None:
            raise _nothing_to_commit(staging.repository, staging.branch)
        return StagedWorkspace(staging.repository, staging.branch, sealed.commit.id)

    def prove(self, workspace: WorkspaceInput, fence: FenceKind) -> None:
        """Have nothing to prove: this store always compares and sets."""

    def finished_head(self, repository: str, branch: str) -> Commit:
        return self.head(repository, branch)  # A replacement is one transaction here.

    def note_same(self, repository: str, ref: str, source: str) -> None:
        """Note nothing: to list a commit is quick here."""

    def apply(self, publication: Publication) -> Published:
        with self._catalogue.writing(timeout_seconds=publication.timeout_seconds) as db:
            ref = publishing.apply(db, publication, self._now())
        return Published(ref, fence="hard")

    def drop(self, staging: Staging) -> None:
        with self._catalogue.writing(durable=False) as db:
            if refs.find_head(db, staging.repository, staging.branch) is not None:
                refs.delete(db, staging.repository, staging.branch, self._now())

    # --- beyond the port: what people and test kits do --------------------------------------

    def create_repository(self, name: str, branch: str = "main") -> Commit:
        """Make a repository whose default branch holds one empty commit."""
        names.check_repository(name)
        names.check_branch(branch)
        now = self._now()
        with self._catalogue.writing() as db:
            if db.execute("SELECT 1 FROM repositories WHERE name = ?", (name,)).fetchone():
                raise AlreadyExistsError(
                    f"repository {name!r} already exists in this store",
                    remedy="use it, or choose another name",
                )
            db.execute("INSERT INTO repositories VALUES (?, ?, ?)", (name, branch, now))
            tree = snapshots.save(db, ())
            root = commits.add(db, name, tree, (), CommitNote("Repository created", {}, now)).commit
            refs.create(db, name, BranchInfo(branch, root.id, hidden=False, created_at=now))
        return root

    def create_branch(
        self, repository: str, branch: str, at: str, *, hidden: bool = False
    ) -> Commit:
        """Make a branch at a ref; returns its head."""
        with self._catalogue.writing() as db:
            start = refs.resolve(db, repository, at)
            born = BranchInfo(branch, start, hidden=hidden, created_at=self._now())
            refs.create(db, repository, born)
            return commits.read(db, repository, start).commit

    def delete_branch(self, repository: str, branch: str) -> None:
        """Delete a branch with its uncommitted changes; its commits stay for the retention."""
        with self._catalogue.writing() as db:
            refs.delete(db, repository, branch, self._now())

    def put(self, repository: str, branch: str, key: str, source: Path | bytes) -> Entry:
        """Change one object of a branch; it is uncommitted until the branch is committed."""
        return self.put_all(repository, branch, {key: source})[0]

    def put_all(
        self, repository: str, branch: str, sources: Mapping[str, Path | bytes]
    ) -> list[Entry]:
        """Change many objects of a branch at once; uncommitted until the branch is committed."""
        uploads = [Upload(key, source) for key, source in sources.items()]
        return self._change(Staging(repository, branch), uploads, (), _silent)

    def remove(self, repository: str, branch: str, key: str) -> None:
        """Delete one object of a branch; uncommitted until the branch is committed."""
        self._change(Staging(repository, branch), (), [key], _silent)

    def commit_branch(
        self,
        repository: str,
        branch: str,
        message: str,
        metadata: Mapping[str, str] | None = None,
        *,
        allow_empty: bool = False,
    ) -> Commit:
        """Commit the uncommitted changes of a branch; refused when they change nothing (G1)."""
        note = CommitNote(message, metadata or {}, self._now())
        with self._catalogue.writing() as db:
            made = publishing.commit_changes(db, repository, branch, note, allow_empty=allow_empty)
        if made is None:
            raise _nothing_to_commit(repository, branch)
        return made.commit

    def import_directory(
        self,
        repository: str,
        branch: str,
        directory: Path,
        message: str,
        metadata: Mapping[str, str] | None = None,
    ) -> Commit:
        """Put every file below a directory under its relative path, and commit what is new."""
        self.put_all(repository, branch, dict(files_below(directory)))
        try:
            return self.commit_branch(repository, branch, message, metadata)
        except NothingToCommitError:
            return self.head(repository, branch)

    def merge(  # noqa: PLR0913 -- both ends, the way, the condition and what it says
        self,
        repository: str,
        source: str,
        branch: str,
        *,
        squash: bool,
        expected_head: str | None = None,
        message: str,
        metadata: Mapping[str, str] | None = None,
    ) -> Commit:
        """Merge a ref into a clean branch from their merge base.

        ``MergeConflictError`` names paths that both changed; ``LostRaceError`` means the head was
        not ``expected_head``.
        """
        note = CommitNote(message, metadata or {}, self._now())
        with self._catalogue.writing() as db:
            refs.expect_head(db, repository, branch, expected_head)
            theirs = refs.resolve(db, repository, source)
            return publishing.merge(db, repository, branch, theirs, note, squash=squash).commit

    def hard_reset(
        self, repository: str, branch: str, to: str, *, expected_head: str | None = None
    ) -> Commit:
        """Point a branch at a ref and discard its uncommitted changes."""
        with self._catalogue.writing() as db:
            refs.expect_head(db, repository, branch, expected_head)
            target = commits.read(db, repository, refs.resolve(db, repository, to)).commit
            refs.discard_changes(db, repository, branch)
            publishing.relocate(db, repository, branch, target.id, self._now())
        return target

    def collect(self, older_than_seconds: float, *, dry_run: bool = False) -> CollectionResult:
        """Remove what no branch or uncommitted change reaches and is older than that.

        Waits for uploads to end, and keeps new ones waiting.
        """
        keep_since = self._now() - older_than_seconds
        with self._objects.sweeping(SWEEP_WAIT_SECONDS):
            with self._catalogue.writing() as db:
                live = collecting.mark(db, keep_since)
                dead = collecting.find_dead(db, live)
                if not dry_run:
                    collecting.forget(db, dead, keep_since)
            # Rows first, then files: a file without a row is harmless, the opposite is a loss.
            swept = collecting.sweep(self._objects, live.objects, dry_run=dry_run)
        return CollectionResult(len(dead.commits), len(dead.ranges), *swept)

    # --- how content arrives ----------------------------------------------------------------

    def _change(
        self, place: Staging, uploads: Sequence[Upload], deletes: Sequence[str], advance: Advance
    ) -> list[Entry]:
        """Bring contents in, then record all changes of a branch in one transaction."""
        for key in (*(upload.key for upload in uploads), *deletes):
            names.check_key(key)
        with self._objects.uploading():
            checked = self._mark_known(place, uploads)
            receive = partial(uploading.receive, self._objects)
            size = sum(upload.size for upload in uploads)
            threads = parallel.local_threads(len(checked), size)
            entries = parallel.each(checked, receive, advance, threads=threads)
            arrived = {
                (hex_of(entry.checksum), entry.size)
                for upload, entry in zip(checked, entries, strict=True)
                if not upload.known
            }
            if arrived:
                # A row must never outlive the bytes it names: they are on disk before it exists.
                self._objects.flush()
            with self._catalogue.writing(durable=False) as db:
                refs.head(db, place.repository, place.branch)
                db.executemany("INSERT OR IGNORE INTO objects VALUES (?, ?)", arrived)
                removed = ((key, None) for key in deletes)
                snapshots.record_changes(db, place.repository, place.branch, removed)
                added = zip((upload.key for upload in uploads), entries, strict=True)
                snapshots.record_changes(db, place.repository, place.branch, added)
        return entries

    def _mark_known(self, place: Staging, uploads: Sequence[Upload]) -> list[Upload]:
        """Say of each upload whether its content is here already; refuse an unknown branch."""
        with self._catalogue.reading() as db:
            refs.head(db, place.repository, place.branch)
            known = []
            for upload in uploads:
                wanted = upload.expected
                here = (
                    wanted is not None
                    and self._objects.holds(wanted)
                    and bool(
                        db.execute(
                            "SELECT 1 FROM objects WHERE digest = ?", (hex_of(wanted.checksum),)
                        ).fetchone()
                    )
                )
                known.append(replace(upload, known=here))
        return known
