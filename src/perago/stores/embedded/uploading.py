"""Files into objects: each is read once, and must be what it was said to be (S3)."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from perago.errors import StoreUnavailableError, UnpublishableFileError
from perago.ports import Advance
from perago.protocol.values import Entry
from perago.stores.embedded.objects import ObjectDirectory
from perago.stores.embedded.ranges import ALGORITHM
from perago.transfer import copying
from perago.transfer.copying import CHUNK


@dataclass(frozen=True, slots=True)
class Upload:
    """Content for a key; ``expected`` is what the file was seen to be, when it was."""

    key: str
    source: Path | bytes
    expected: Entry | None = None
    opens: Callable[[], int] | None = None
    """Opens the source in another way than by its path."""
    known: bool = False
    """The store holds ``expected`` already: verify the source, copy nothing."""

    @property
    def size(self) -> int:
        """Say about how many bytes will be read."""
        if self.expected is not None:
            return self.expected.size
        if isinstance(self.source, bytes):
            return len(self.source)
        try:
            return self.source.lstat().st_size
        except OSError:
            return 0  # whether it can be read is found out when it is read


def receive(objects: ObjectDirectory, upload: Upload, advance: Advance) -> Entry:
    """Bring content in, and say what it is."""
    try:
        if isinstance(upload.source, bytes):
            return _receive_bytes(objects, upload.source, advance)
        return _receive_file(objects, upload, upload.source, advance)
    except OSError as error:
        raise StoreUnavailableError(
            f"object {upload.key!a} cannot be brought into {objects.objects}: {error.strerror}",
            remedy="make the directory writable, with space enough, then run again",
        ) from error


def _receive_bytes(objects: ObjectDirectory, content: bytes, advance: Advance) -> Entry:
    entry = copying.entry_of(content)
    with objects.arrival() as arrival:
        copying.write_all(arrival.handle, memoryview(content))
        arrival.place(entry)
    advance(entry.size)
    return entry


def _receive_file(objects: ObjectDirectory, upload: Upload, path: Path, advance: Advance) -> Entry:
    source = _open(path, upload.opens)
    try:
        before = os.fstat(source)
        if upload.known:
            return _confirmed(
                upload, source, before, copying.stream(source, None, advance, ALGORITHM)
            )
        with objects.arrival() as arrival:
            if before.st_size > CHUNK and copying.reflink(source, arrival.handle):
                found = copying.stream(arrival.handle, None, advance, ALGORITHM)
            else:
                found = copying.stream(source, arrival.handle, advance, ALGORITHM)
            _confirmed(upload, source, before, found)
            arrival.place(found)
        return found
    finally:
        os.close(source)


def _open(path: Path, opens: Callable[[], int] | None) -> int:
    """Open a plain file, neither following a link nor waiting for a pipe."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        source = os.open(path, flags) if opens is None else opens()
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.EMLINK}:
            raise UnpublishableFileError(
                f"workspace publication does not support symlinks: {path}",
                remedy="replace the link by the file it points to",
            ) from error
        raise UnpublishableFileError(
            f"file {path} cannot be read: {error.strerror}",
            remedy="leave it in place and readable until the task is over",
        ) from error
    if not stat.S_ISREG(os.fstat(source).st_mode):
        os.close(source)
        raise UnpublishableFileError(
            f"{path} is not a regular file", remedy="publish plain files only"
        )
    return source


def _confirmed(upload: Upload, source: int, before: os.stat_result, found: Entry) -> Entry:
    """Return what was read, if the file stood still and is what was expected."""
    after = os.fstat(source)
    still = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
    wanted = upload.expected
    if not still or found.size != after.st_size or (wanted is not None and found != wanted):
        raise UnpublishableFileError(
            f"file {upload.source!s} changed while it was read",
            remedy="let the task finish all writing before it returns",
        )
    return found
