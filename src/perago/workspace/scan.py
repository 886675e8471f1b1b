"""What is in an attempt directory: names for guards, content for the diff (S2, S3, T7).

Only plain files are content. Everything else, and every file that does not hold still while it is
read, is refused before anything is uploaded.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from perago.errors import UnpublishableFileError
from perago.ports import Advance
from perago.protocol.guard import Tree
from perago.protocol.paths import Selection, check_local, is_marker
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

    def untouched(self, path: str, found: Stamp) -> bool:
        """Tell by size, times and inode; a stamp too fresh to trust says no."""
        stamp = self.stamps.get(path)
        return stamp == found and stamp[2] < self.taken_ns - _RACY_NS


def baseline(
    root: Path,
    manifest: Manifest,
    algorithm: str = "sha256",
    content: Content = lambda entry: entry,
) -> Baseline:
    """Remember how the files look right after the download.

    A file whose checksum cannot be computed here (a store's own tag) is hashed now: later nobody
    could tell whether it was changed.
    """
    taken = time.time_ns()
    stamps = {path: _stamp(os.lstat(f"{root}/{path}")) for path in manifest}
    with _directory(root) as root_fd:
        hashes = {
            path: _hash(root_fd, path, algorithm)
            for path, entry in manifest.items()
            if _scheme(entry) is None
        }
    return Baseline(manifest, stamps, taken, hashes, content)


def survey(root: Path, selection: Selection) -> Tree:
    """List the files guards may see; cheap, nothing is opened."""
    return Tree.of(
        path
        for path, found in _walk(root)
        if stat.S_ISREG(found.st_mode) and not is_marker(path) and not selection.excludes(path)
    )


def scan(root: Path, selection: Selection, algorithm: str, before: Baseline) -> Manifest:
    """Read the wanted state of the workspace, hashing only what may have changed."""
    files: dict[str, os.stat_result] = {}
    names: Counter[tuple[int, int]] = Counter()  # How many names of a file are in here.
    for path, found in _walk(root):
        if found.st_nlink > 1:
            names[found.st_dev, found.st_ino] += 1
        if is_marker(path) or selection.excludes(path):
            continue
        _refuse_special(path, found)
        files[path] = found
    _refuse_outside_links(files, names)
    manifest: dict[str, Entry] = {}
    pending: dict[str, int] = {}
    for path in check_local(selection, files):
        known = before.manifest.get(path)
        if known and known.checksum and before.untouched(path, _stamp(files[path])):
            manifest[path] = known
        else:
            pending[path] = files[path].st_size
    for path, hashed in zip(pending, _hash_all(root, pending, algorithm, before), strict=True):
        known = before.manifest.get(path)
        manifest[path] = known if known and _is_same(before, path, known, hashed) else hashed
    return manifest


def _is_same(before: Baseline, path: str, known: Entry, hashed: Entry) -> bool:
    """Tell whether a content is still the listed one, whatever the store lists it by."""
    if not known.checksum or known == hashed:
        return known == hashed
    return hashed in {before.hashes.get(path), before.content(known)}


def _hash_all(
    root: Path, sizes: Mapping[str, int], algorithm: str, before: Baseline
) -> list[Entry]:
    """Hash files, big ones beside each other."""

    def work(path: str, _: Advance) -> Entry:
        known = before.manifest.get(path)
        return _hash(root_fd, path, (known and _scheme(known)) or algorithm)

    with _directory(root) as root_fd:
        threads = parallel.local_threads(len(sizes), sum(sizes.values()))
        return parallel.each(list(sizes), work, lambda _: None, threads=threads)


def _scheme(entry: Entry) -> str | None:
    """Name the hash of a checksum, if it is one that can be computed here."""
    algorithm = entry.checksum.partition(":")[0]
    return algorithm if algorithm in hashlib.algorithms_guaranteed else None


def _walk(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield everything that is not a directory, without following links."""
    pending = [""]
    while pending:
        directory = pending.pop()
        try:
            with os.scandir(root / directory) as found:
                entries = sorted(found, key=lambda entry: entry.name)
                for entry in entries:
                    path = f"{directory}/{entry.name}" if directory else entry.name
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(path)
                    else:
                        yield path, entry.stat(follow_symlinks=False)
        except OSError as error:
            raise UnpublishableFileError(
                f"directory {directory or '.'!a} cannot be read: {error.strerror or error}",
                remedy="leave the workspace readable, and alone once the task has returned",
            ) from error


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


def _hash(root_fd: int, path: str, algorithm: str) -> Entry:
    """Read one file through directories that are not links, and notice when it changes."""
    size = 0
    try:
        fd = _open_beneath(root_fd, path)
        with os.fdopen(fd, "rb", buffering=0) as file:
            before = os.fstat(fd)
            if not stat.S_ISREG(before.st_mode):
                raise _changed(path)
            hashed = Hashing(algorithm, before.st_size)
            while chunk := file.read(CHUNK):
                hashed.update(chunk)
                size += len(chunk)
            if _stamp(os.fstat(fd)) != _stamp(before) or size != before.st_size:
                raise _changed(path)
    except OSError as error:
        raise UnpublishableFileError(
            f"file {_shown(path)} cannot be read: {error.strerror or error}",
            remedy="leave the workspace readable, and alone once the task has returned",
        ) from error
    return Entry(size, hashed.checksum)


def _open_beneath(root_fd: int, path: str) -> int:
    """Open a file below a directory; a link anywhere on the way is an error."""
    *directories, name = path.split("/")
    opened: list[int] = []
    try:
        for directory in directories:
            here = opened[-1] if opened else root_fd
            opened.append(
                os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            )
            if len(opened) > 1:
                os.close(opened.pop(0))
        here = opened[-1] if opened else root_fd
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=here)
    finally:
        for fd in opened:
            os.close(fd)


@contextmanager
def _directory(path: Path) -> Iterator[int]:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


def _stamp(found: os.stat_result) -> Stamp:
    return (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev)


def _changed(path: str) -> UnpublishableFileError:
    return UnpublishableFileError(
        f"file {_shown(path)} changed while it was read",
        remedy="end every thread and process of the task before it returns",
    )


def _shown(path: str) -> str:
    """Keep an ordinary path as it is; escape what could spoil a log."""
    return path if path.isprintable() and path.isascii() else ascii(path)
