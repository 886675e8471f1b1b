"""What is in an attempt directory: names for guards, content for the diff (S2, S3, T7).

Only plain files are content. Everything else, and every file that does not hold still while it is
read, is refused before anything is uploaded.
"""

from __future__ import annotations

import functools
import hashlib
import os
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from perago.errors import UnpublishableFileError
from perago.filesystem import trees
from perago.ports import Advance, AttemptDir
from perago.protocol.guard import Tree
from perago.protocol.paths import Selection, check_local, is_marker
from perago.protocol.printable import brief
from perago.protocol.values import Entry, Manifest
from perago.transfer import parallel
from perago.transfer.hashing import Hashing

CHUNK = 1 << 20
# A write in the same tick of the file system's clock as our look would not show in the times.
_RACY_NS = 50_000_000

Stamp = tuple[int, int, int, int, int]
Content = Callable[[Entry], Entry]
"""What hash a content has whose listed checksum may be another's tag; the store knows."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The workspace as it was downloaded: content, and the stamps that show it is untouched."""

    manifest: Manifest
    stamps: Mapping[str, Stamp]
    taken_ns: int
    hashes: Mapping[str, Entry] = field(default_factory=dict)
    content: Content = lambda entry: entry
    times_tell: bool = True
    """Whether the file system notes the time of every change; where not, nothing is untouched."""

    def untouched(self, path: str, found: Stamp) -> bool:
        """Tell by size, times and inode; a stamp too fresh to trust says no."""
        stamp = self.stamps.get(path)
        return self.times_tell and stamp == found and stamp[2] < self.taken_ns - _RACY_NS

    def held(self, path: str) -> Entry:
        """Return what a file held by the hash of new files, where that is known."""
        return self.hashes.get(path) or self.content(self.manifest[path])


@dataclass(frozen=True, slots=True)
class Scanned:
    """The wanted state, and how each of its files looked when it was compared."""

    manifest: Manifest
    stamps: Mapping[str, Stamp]


def baseline(
    root: Path | AttemptDir,
    manifest: Manifest,
    algorithm: str = "sha256",
    content: Content = lambda entry: entry,
) -> Baseline:
    """Remember how the files look right after the download.

    A file whose checksum cannot be computed here (a store's own tag) is hashed now: later nobody
    could tell whether it was changed.
    """
    taken = time.time_ns()
    with _opened(root) as fd:
        found = {path: _stamp(seen) for path, seen in _walk(fd)}
        stamps = {path: found[path] for path in manifest if path in found}
        if gone := next((path for path in manifest if path not in stamps), None):
            raise _changed(gone)
        hashes = {
            path: _hash(fd, path, algorithm, stamps[path])
            for path, entry in manifest.items()
            if _scheme(entry) is None
        }
    times_tell = not isinstance(root, AttemptDir) or root.times_tell
    return Baseline(manifest, stamps, taken, hashes, content, times_tell)


def survey(root: Path | AttemptDir, selection: Selection) -> Tree:
    """List the files guards may see; cheap, nothing is opened."""
    with _opened(root) as fd:
        return Tree.of(
            path
            for path, found in _walk(fd)
            if stat.S_ISREG(found.st_mode) and not is_marker(path) and not selection.excludes(path)
        )


def scan(
    root: Path | AttemptDir, selection: Selection, algorithm: str, before: Baseline
) -> Manifest:
    """Read the wanted state of the workspace, hashing only what may have changed."""
    return look(root, selection, algorithm, before).manifest


def look(
    root: Path | AttemptDir, selection: Selection, algorithm: str, before: Baseline
) -> Scanned:
    """Read the wanted state as :func:`scan` does, and remember how each file looked."""
    with _opened(root) as fd:
        files = _files(fd, selection)
        _refuse_unlisted(fd, before.manifest, files)
        stamps = {path: _stamp(files[path]) for path in check_local(selection, files)}
        manifest: dict[str, Entry] = {}
        pending: dict[str, Stamp] = {}
        for path, stamp in stamps.items():
            known = before.manifest.get(path)
            if known and known.checksum and before.untouched(path, stamp):
                manifest[path] = known
            else:
                pending[path] = stamp
        for path, hashed in zip(pending, _hash_all(fd, pending, algorithm, before), strict=True):
            known = before.manifest.get(path)
            manifest[path] = known if known and _is_same(before, path, known, hashed) else hashed
    return Scanned(manifest, stamps)


def look_again(root: Path | AttemptDir, selection: Selection) -> dict[str, Stamp]:
    """Tell how each file looks now; nothing is opened."""
    with _opened(root) as fd:
        return {path: _stamp(found) for path, found in _files(fd, selection).items()}


class Source:
    """The files of a workspace, opened as they were scanned: not by a path that others can bend.

    Threads may use it together; the directory is opened when the first file is.
    """

    def __init__(self, root: Path | AttemptDir, stamps: Mapping[str, Stamp]) -> None:
        self._root = root
        self._stamps = stamps
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._fd: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def opener(self, path: str) -> Callable[[], int]:
        """Return what opens a file, and refuses one that is not what was scanned (S3)."""
        return functools.partial(self._open, path)

    def _open(self, path: str) -> int:
        with self._lock:
            if self._fd is None:
                self._fd = self._stack.enter_context(_opened(self._root))
        return _open(self._fd, path, self._stamps[path])


def _files(fd: int, selection: Selection) -> dict[str, os.stat_result]:
    """Find the files that are content; refuse what can be none."""
    if mounted := trees.mounts(fd):
        raise UnpublishableFileError(
            f"workspace publication does not support mounts: {_shown(mounted[0])}",
            remedy="unmount it, and write a copy of the files instead",
        )
    files: dict[str, os.stat_result] = {}
    names: Counter[tuple[int, int]] = Counter()  # How many names of a file are in here.
    for path, found in _walk(fd):
        if found.st_nlink > 1:
            names[found.st_dev, found.st_ino] += 1
        if is_marker(path) or selection.excludes(path):
            continue
        _refuse_special(path, found)
        files[path] = found
    _refuse_outside_links(files, names)
    return files


def _refuse_unlisted(fd: int, manifest: Manifest, files: Mapping[str, os.stat_result]) -> None:
    """Refuse a listing without a file that is there: it would be published as deleted.

    While names are exchanged, a file system may list neither of them.
    """
    gone: set[str] = set()
    for path in manifest:
        if path in files or any(part in gone for part in _beginnings(path)):
            continue
        part = trees.missing_part(fd, path)
        if not part:
            raise _changed(path)
        gone.add(part)


def _beginnings(path: str) -> Iterator[str]:
    """Yield a path and the directories that it is in."""
    yield path
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _is_same(before: Baseline, path: str, known: Entry, hashed: Entry) -> bool:
    """Return whether a content is still the listed one, whatever the store lists it by."""
    if not known.checksum or known == hashed:
        return known == hashed
    return hashed in {before.hashes.get(path), before.content(known)}


def _hash_all(
    fd: int, stamps: Mapping[str, Stamp], algorithm: str, before: Baseline
) -> list[Entry]:
    """Hash files, big ones beside each other."""

    def work(path: str, _: Advance) -> Entry:
        known = before.manifest.get(path)
        return _hash(fd, path, (known and _scheme(known)) or algorithm, stamps[path])

    threads = parallel.local_threads(len(stamps), sum(size for size, *_ in stamps.values()))
    return parallel.each(list(stamps), work, lambda _: None, threads=threads)


def _scheme(entry: Entry) -> str | None:
    """Name the hash of a checksum, if it is one that can be computed here."""
    algorithm = entry.checksum.partition(":")[0]
    return algorithm if algorithm in hashlib.algorithms_guaranteed else None


def _walk(fd: int) -> Iterator[tuple[str, os.stat_result]]:
    """Yield everything that is not a directory, without following links or leaving the mount."""
    try:
        yield from trees.walk(fd)
    except OSError as error:
        raise _unreadable(str(error.filename or "."), error) from error


def _unreadable(directory: str, error: OSError) -> UnpublishableFileError:
    return UnpublishableFileError(
        f"directory {directory!a} cannot be read: {error.strerror or error}",
        remedy="leave the workspace readable, and alone once the task has returned",
    )


def _refuse_special(path: str, found: os.stat_result) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise UnpublishableFileError(
            f"workspace publication does not support symlinks: {_shown(path)}",
            remedy="write a copy of the file instead",
        )
    if not stat.S_ISREG(found.st_mode):
        raise UnpublishableFileError(
            f"workspace publication supports plain files only: {_shown(path)}",
            remedy="remove the FIFO, socket or device before the task returns",
        )


def _refuse_outside_links(
    files: Mapping[str, os.stat_result], names: Mapping[tuple[int, int], int]
) -> None:
    """Refuse a hard link whose other name is not in the workspace: it could change unseen."""
    for path, found in files.items():
        if found.st_nlink > 1 and names[found.st_dev, found.st_ino] < found.st_nlink:
            raise UnpublishableFileError(
                f"workspace publication does not support hard links to outside: {_shown(path)}",
                remedy="write a copy of the file instead",
            )


def _hash(fd: int, path: str, algorithm: str, stamp: Stamp) -> Entry:
    """Read one file through directories that are not links, and notice when it changes."""
    size = 0
    try:
        with os.fdopen(_open(fd, path, stamp), "rb", buffering=0) as file:
            hashed = Hashing(algorithm, stamp[0])
            while chunk := file.read(CHUNK):
                hashed.update(chunk)
                size += len(chunk)
            if _stamp(os.fstat(file.fileno())) != stamp or size != stamp[0]:
                raise _changed(path)
    except OSError as error:
        raise UnpublishableFileError(
            f"file {_shown(path)} cannot be read: {error.strerror or error}",
            remedy="leave the workspace readable, and alone once the task has returned",
        ) from error
    return Entry(size, hashed.checksum)


def _open(fd: int, path: str, stamp: Stamp) -> int:
    """Open a file below a directory, if it still is the one that was scanned."""
    opened = trees.open_beneath(fd, path)
    found = os.fstat(opened)
    if not stat.S_ISREG(found.st_mode) or _stamp(found) != stamp:
        os.close(opened)
        raise _changed(path)
    return opened


@contextmanager
def _opened(root: Path | AttemptDir) -> Iterator[int]:
    """Open what is scanned: a real directory, inside the attempt directory that was made."""
    with ExitStack() as stack:
        try:
            if isinstance(root, AttemptDir):
                attempt_dir = stack.enter_context(trees.opened(root.path, root.made))
                fd = stack.enter_context(trees.entered(attempt_dir, root.workspace.name))
            else:
                fd = stack.enter_context(trees.opened(root))
        except OSError as error:
            raise _unreadable(".", error) from error
        yield fd


def _stamp(found: os.stat_result) -> Stamp:
    return (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev)


def _changed(path: str) -> UnpublishableFileError:
    return UnpublishableFileError(
        f"file {_shown(path)} changed while it was read",
        remedy="end every thread and process of the task before it returns",
    )


def _shown(path: str) -> str:
    """Keep an ordinary path as it is; escape what could spoil a log."""
    return brief(path if path.isprintable() and path.isascii() else ascii(path))
