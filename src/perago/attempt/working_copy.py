"""Where the body of an attempt works: a directory of its own, or the staging branch itself (X2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from perago.attempt.progress import AttemptProgress
from perago.attempt.staging import Stage
from perago.errors import UnpublishableFileError
from perago.ports import Advance, AttemptDir, Fetch, Gateway, ObjectAccess, Put, Site, Store
from perago.protocol import events
from perago.protocol.diff import diff
from perago.protocol.guard import Tree
from perago.protocol.parts import may_be_renamed, only_names_differ, tables_of
from perago.protocol.paths import (
    Selection,
    check_beside,
    check_local,
    is_action,
    plan_download,
    plan_with_rest,
)
from perago.protocol.spark import is_leftover
from perago.protocol.values import (
    ChangeSet,
    Entry,
    Manifest,
    Phase,
    StagedWorkspace,
    Staging,
    WorkspaceInput,
)
from perago.workspace.neighbours import check_added
from perago.workspace.scan import Baseline, Source, Stamp, baseline, look, survey


@dataclass(frozen=True, slots=True)
class Change:
    """What will be published, as a step from ``base``: A, or H under fence ``lineage``."""

    base: str
    steps: ChangeSet
    after: Manifest = field(default_factory=dict)
    """The wanted state, where its bytes still have to travel."""
    stamps: Mapping[str, Stamp] = field(default_factory=dict)
    """How its files looked when they were compared."""


class WorkingCopy(Protocol):
    """Both kinds, as the steps of an attempt see them."""

    @property
    def root(self) -> Path | None:
        """Return the directory, if it is one."""

    @property
    def site(self) -> Site:
        """Describe it to the engine that computes there."""

    def tree(self) -> Tree:
        """List the files that guards may see."""

    def change(self) -> Change:
        """Compare with the input A."""

    def stage(self, stage: Stage, change: Change) -> None:
        """Bring the staging branch to the wanted state (S2)."""

    def confirm(self, staged: StagedWorkspace, change: Change) -> None:
        """Refuse a commit that holds something else than what was compared (S3)."""


def download(
    workspace: WorkspaceInput,
    select: Selection,
    attempt_dir: AttemptDir,
    store: Store,
    progress: AttemptProgress,
) -> tuple[Baseline, tuple[str, ...]]:
    """Fill the attempt directory with the files of A; return them, and the paths left out."""
    repository, ref = workspace.repository, workspace.ref
    manifest, rest = plan_with_rest(select, store.listing(repository, ref, select.root))
    wanted = [
        Fetch(select.key(path), entry, attempt_dir.workspace / path)
        for path, entry in manifest.items()
    ]
    total = sum(entry.size for entry in manifest.values())
    meter = progress.meter(Phase.DOWNLOAD, total)
    store.fetch(repository, ref, wanted, meter)
    progress.event(events.Downloaded(len(manifest), total, *meter.pace()))
    return baseline(attempt_dir, manifest, store.checksum, store.content), rest


@dataclass(frozen=True, slots=True)
class DownloadedCopy:
    """The attempt directory with the files of A in it."""

    execution_id: str
    base: str
    select: Selection
    attempt_dir: AttemptDir
    before: Baseline
    checksum: str
    rest: tuple[str, ...] = ()
    """What lies below the prefix and was left out: excluded, or not included."""
    by_spark: bool = False
    """Whether names of part files may be Spark's, which mean nothing (X13)."""

    @property
    def root(self) -> Path:
        """Return the directory the author works in."""
        return self.attempt_dir.workspace

    @property
    def site(self) -> Site:
        """Describe it."""
        return Site(self.execution_id, self.root, self.before.manifest, lambda: self.change().steps)

    def tree(self) -> Tree:
        """List files; nothing is opened."""
        return survey(self.attempt_dir, self.select)

    def change(self) -> Change:
        """Read the wanted state and compare; refuse what could not be downloaded again (D2)."""
        found = look(self.attempt_dir, self.select, self.checksum, self.before)
        steps = diff(self.before.manifest, found.manifest)
        if self.by_spark and self._is_renamed(steps, found.manifest):
            return Change(self.base, ChangeSet(), self.before.manifest)
        check_beside(steps.added, self.rest)
        return Change(self.base, steps, found.manifest, found.stamps)

    def _is_renamed(self, steps: ChangeSet, after: Manifest) -> bool:
        """Return whether the files of A are there, only under other names of Spark's."""
        if not may_be_renamed(steps):
            return False
        held = {path: self.before.held(path) for path in steps.removed}
        return only_names_differ(steps, held, after)

    def stage(self, stage: Stage, change: Change) -> None:
        """Create the branch, upload new and changed files as they were compared (S3, V6)."""
        stage.open(change.base)
        key, after = self.select.key, change.after
        with Source(self.attempt_dir, change.stamps) as source:
            puts = [
                Put(key(path), after[path], self.root / path, source.opener(path))
                for path in change.steps.uploads
            ]
            stage.fill(puts, [key(path) for path in change.steps.removed])

    def confirm(self, staged: StagedWorkspace, change: Change) -> None:
        """Accept it: only this execution wrote to the branch, and each file was checked."""


@dataclass(frozen=True, slots=True)
class BranchCopy:
    """A staging branch that Spark reads and writes where it is stored; nothing is downloaded.

    Without a branch (read-only tasks) there is only A to be read.
    """

    execution_id: str
    base: str
    select: Selection
    store: Store
    direct: ObjectAccess
    repository: str
    staging: Staging | None
    scratch: Path
    dropped: Callable[[Sequence[str]], None] = lambda _: None
    """Told which leftovers of Spark were removed."""

    root: None = None

    @property
    def site(self) -> Site:
        """Describe it."""
        return Site(self.execution_id, changes=self.changes, in_place=self)

    @property
    def gateway(self) -> Gateway:
        """Return how its objects are reached."""
        return self.direct.gateway

    @property
    def source(self) -> str:
        """Name the input, which never changes, as ``repository/commit/prefix/``."""
        return f"{self.repository}/{self.base}/{self.select.root}"

    @property
    def target(self) -> str | None:
        """Name where to write, in the same way."""
        if self.staging is None:
            return None
        return f"{self.repository}/{self.staging.branch}/{self.select.root}"

    def tree(self) -> Tree:
        """List the branch as it is now."""
        return Tree.of(self.paths())

    def paths(self, path: str = "") -> Sequence[str]:
        """Return the files at a path and below it, as they are now."""
        return [*self.entries(path)]

    def entries(self, path: str = "") -> Manifest:
        """Return the same files with what is known of each."""
        ref = self.staging.branch if self.staging else self.base
        listing = self.store.listing(self.repository, ref, self.select.key(path))
        found = plan_download(self.select, listing)
        if not path:
            return found
        return {
            name: entry
            for name, entry in found.items()
            if name == path or name.startswith(f"{path}/")
        }

    def touched(self, path: str) -> bool:
        """Return whether this attempt has changed anything at a path or below it."""
        if self.staging is None:
            return False
        return self.direct.touched(self.staging, self.select.key(path))

    def remove(self, paths: Sequence[str]) -> None:
        """Remove files from the branch."""
        self._delete([self.select.key(path) for path in paths])

    def bring(self, directory: Path, path: str, advance: Advance) -> Sequence[str]:
        """Upload what was written on this machine, each file with its checksum."""
        if self.staging is None:
            return []
        found = look(directory, Selection(""), self.store.checksum, Baseline({}, {}, 0))
        below = f"{path}/" if path else ""
        with Source(directory, found.stamps) as source:
            puts = {
                below + name: Put(
                    self.select.key(below + name), entry, directory / name, source.opener(name)
                )
                for name, entry in found.manifest.items()
                if not is_leftover(name)
            }
            self.store.write(self.staging, [*puts.values()], [], advance)
        return [*puts]

    def names(self, directory: str) -> Sequence[str]:
        """Return what lies right below a directory of A; a directory ends in ``/``."""
        root = self.select.key(f"{directory}/" if directory else "")
        return self.direct.names(self.repository, self.base, root)

    def before(self, directory: str) -> Sequence[str]:
        """Return all files below a directory of A."""
        root = self.select.key(f"{directory}/" if directory else "")
        listing = self.store.listing(self.repository, self.base, root)
        return [*plan_download(self.select, listing)]

    def changes(self) -> ChangeSet:
        """Compare with A, after removing what Spark left beside data unless A had it too."""
        steps = self._mapped(self._scrubbed())
        return ChangeSet() if self._is_renamed(steps) else steps

    def change(self) -> Change:
        """Compare, and refuse what may not be written or could not be read back (S2, S3)."""
        found = self._scrubbed()
        for key in _files((*found.added, *found.changed, *found.removed)):
            if is_action(key) or not key.startswith(self.select.root):
                raise UnpublishableFileError(
                    f"object {key!a} is not for this task to write",
                    remedy="name paths with workspace.path(), without '..'",
                )
        steps = self._mapped(found)
        if self._is_renamed(steps):
            return Change(self.base, ChangeSet())
        check_local(self.select, steps.uploads)
        check_added(self, steps)
        return Change(self.base, steps)

    def stage(self, stage: Stage, change: Change) -> None:
        """Do nothing: the body has worked on the branch itself."""

    def confirm(self, staged: StagedWorkspace, change: Change) -> None:
        """Refuse a commit that holds more than was compared: a job was still writing (S3)."""
        sealed = self.store.diff(self.repository, self.base, staged.commit, "")
        if self._mapped(sealed) != change.steps:
            raise UnpublishableFileError(
                "the staging branch changed while it was committed",
                remedy="let the body end only when all its Spark jobs have",
            )

    def _is_renamed(self, steps: ChangeSet) -> bool:
        """Return whether the files of A are on the branch, only under other names of Spark's."""
        if self.staging is None or not may_be_renamed(steps):
            return False
        before: dict[str, Entry] = {}
        after: dict[str, Entry] = {}
        for table in tables_of(steps):
            root = self.select.key(f"{table}/" if table else "")
            for ref, found in ((self.base, before), (self.staging.branch, after)):
                listing = self.store.listing(self.repository, ref, root)
                found.update(plan_download(self.select, listing))
        return only_names_differ(steps, before, after)

    def _scrubbed(self) -> ChangeSet:
        """Read the raw keys that changed on the branch; leftovers among the new ones go."""
        if self.staging is None:
            return ChangeSet()
        found = self.direct.changes(self.staging, "")
        # An empty object whose name ends in '/' is how Hadoop makes a directory of S3.
        left = [key for key in found.added if key.endswith("/") or is_leftover(key)]
        self._delete(left)
        if files := _files(left):
            self.dropped(files)
        return replace(found, added=tuple(sorted({*found.added} - {*left})))

    def _mapped(self, found: ChangeSet) -> ChangeSet:
        """Turn keys into paths of the workspace."""
        cut = len(self.select.root)
        return ChangeSet(
            added=tuple(key[cut:] for key in _files(found.added)),
            changed=tuple(key[cut:] for key in _files(found.changed)),
            removed=tuple(key[cut:] for key in _files(found.removed)),
        )

    def _delete(self, keys: Sequence[str]) -> None:
        if self.staging is not None and keys:
            self.store.write(self.staging, [], keys, lambda _: None)


def _files(keys: Sequence[str]) -> list[str]:
    """Leave out directory markers, which are no content (S2)."""
    return [key for key in keys if not key.endswith("/")]
