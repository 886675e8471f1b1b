"""A person's files against a version: what they changed, and how it gets into a directory.

They are scanned as every workspace is (S2, S3): links, devices and files that change while they are
read are refused. Nothing is written to the person's directory.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from perago.errors import UnpublishableFileError, UsageError, WorkspaceError
from perago.filesystem import trees
from perago.human.directory import TakenDirectory
from perago.ports import AttemptDir, Store
from perago.protocol.diff import diff
from perago.protocol.edits import EditConflict, carried_over
from perago.protocol.paths import Selection, check_beside, plan_with_rest
from perago.protocol.values import ChangeSet, Manifest, WorkspaceInput
from perago.workspace.scan import Baseline, Scanned, Source, look, look_again

QUIET_SECONDS: Final = 0.3
"""For so long nothing may have written to the files."""
_ROOM: Final = "make room there or name another directory, and take the step again"


@dataclass(frozen=True, slots=True)
class Version:
    """One commit, as the files of a task."""

    store: Store
    workspace: WorkspaceInput
    select: Selection

    def manifest(self) -> tuple[Manifest, tuple[str, ...]]:
        """List the files, and the paths that the task leaves out."""
        where = self.workspace.repository, self.workspace.ref, self.select.root
        return plan_with_rest(self.select, self.store.listing(*where))


@dataclass(frozen=True, slots=True)
class Copies:
    """Files that are brought to a directory, as they are called where that fails."""

    what: str
    place: Path
    remedy: str

    @contextmanager
    def told(self) -> Iterator[None]:
        """Say in one sentence why they could not be copied."""
        try:
            yield
        except OSError as error:
            raise WorkspaceError(
                f"{self.what} cannot be copied to {self.place}: {error.strerror or error}",
                remedy=self.remedy,
            ) from error


@dataclass(frozen=True, slots=True)
class PersonsFiles:
    """What is in a taken directory now, beside the version it was taken at."""

    root: AttemptDir
    select: Selection
    before: Manifest
    found: Scanned
    steps: ChangeSet

    def refuse_changed(self) -> None:
        """Refuse files that are not as they were compared, or were written a moment ago."""
        newest = max((changed for _, changed, *_ in self.found.stamps.values()), default=0)
        time.sleep(min(max(0.0, newest / 1e9 + QUIET_SECONDS - time.time()), QUIET_SECONDS))
        now = look_again(self.root, self.select)
        for path in sorted({*now, *self.found.stamps}):
            if now.get(path) != self.found.stamps.get(path):
                raise UnpublishableFileError(
                    f"file {path!a} is being changed", remedy="submit when nothing writes there"
                )

    def apply(
        self, puts: Sequence[str], removes: Sequence[str], target: Path, what: Copies
    ) -> None:
        """Bring changes to a directory that holds a version already."""
        with what.told():
            for path in removes:
                (target / path).unlink()
                _prune(target, path)
            with Source(self.root, self.found.stamps) as source:
                for path in puts:
                    _put(source.opener(path)(), target / path)


def read_files(taken: TakenDirectory, version: Version) -> PersonsFiles:
    """Compare a person's files with the version they were taken at, by their bytes."""
    before, rest = version.manifest()
    root = _root(taken)
    baseline = Baseline(before, {}, 0, content=version.store.content, times_tell=False)
    found = look(root, version.select, version.store.checksum, baseline)
    steps = diff(before, found.manifest)
    check_beside(steps.added, rest)
    return PersonsFiles(root, version.select, before, found, steps)


def carry_over(
    edits: TakenDirectory, old: Version, new: Version, target: Path, shown: Path
) -> None:
    """Apply what a person did to an older version to the newer one in ``target`` (Q12)."""
    files = read_files(edits, old)
    now, _ = new.manifest()
    plan = carried_over(files.before, files.found.manifest, now)
    if isinstance(plan, EditConflict):
        raise UsageError(
            f"{plan.path!a} cannot be carried over from {edits.path}: {plan.why}",
            remedy="take the step without --edits, and bring your changes over by hand",
        )
    what = Copies("your edits", shown, f"{_ROOM}; {edits.path} is untouched")
    files.apply(plan.puts, plan.removes, target, what)


def hand_out(source: Path, target: Path, shown: Path) -> None:
    """Copy a version to a person's directory; the copies are theirs.

    The first file that cannot be copied ends it. ``shown`` is where the person will find them.
    """
    with Copies("the files of the step", shown, _ROOM).told():
        for above, _, names in os.walk(source, onerror=_raise):
            place = target / Path(above).relative_to(source)
            place.mkdir(mode=stat.S_IMODE(Path(above).stat().st_mode))
            for name in names:
                shutil.copyfile(Path(above) / name, place / name)


def _raise(error: OSError) -> None:
    raise error


def _root(taken: TakenDirectory) -> AttemptDir:
    """Name the person's files as something to scan; where they are gone, nothing was deleted."""
    try:
        with trees.opened(taken.path.resolve()) as directory:
            made = trees.identity(os.fstat(directory))
            with trees.entered(directory, taken.files.name):
                pass
    except OSError as error:
        raise UsageError(
            f"{taken.files} cannot be read: {error.strerror or error}",
            remedy="put the directory back; to remove every file, leave it empty",
        ) from None
    return AttemptDir(
        taken.path.resolve(), taken.path.resolve() / taken.files.name, made, times_tell=False
    )


def _put(opened: int, target: Path) -> None:
    with os.fdopen(opened, "rb") as source:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)  # A new file: the old one may share its bytes with a cache.
        with target.open("xb") as copy:
            shutil.copyfileobj(source, copy)


def _prune(target: Path, path: str) -> None:
    """Remove the directories that a removed file was the last in: a file may take their name."""
    above = (target / path).parent
    while above != target and not any(above.iterdir()):
        above.rmdir()
        above = above.parent
