"""Both ends of a transfer on this machine: new files are verified, old ones must hold still."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from perago.errors import CorruptObjectError, UnpublishableFileError, WorkspaceError
from perago.ports import Advance, Fetch, Put

CHUNK = 1 << 20


class Incoming:
    """A new file that is removed again unless it turns out to be what was promised (D3)."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._size = 0
        self._algorithm = fetch.entry.checksum.partition(":")[0]
        known = self._algorithm in hashlib.algorithms_guaranteed
        self._hash = hashlib.new(self._algorithm, usedforsecurity=False) if known else None

    def __enter__(self) -> Self:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        path = self._fetch.to
        try:
            try:
                self._fd = os.open(path, flags, 0o644)
            except FileNotFoundError:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._fd = os.open(path, flags, 0o644)
        except OSError as error:
            raise self._unwritable(error) from error
        return self

    def take(self, chunk: memoryview) -> None:
        """Write the next bytes."""
        if self._hash is not None:
            self._hash.update(chunk)
        self._size += len(chunk)
        try:
            while chunk:
                chunk = chunk[os.write(self._fd, chunk) :]
        except OSError as error:
            raise self._unwritable(error) from error

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._fd)
        if kind is None and self._is_right():
            return
        self._fetch.to.unlink(missing_ok=True)
        if kind is None:
            entry = self._fetch.entry
            raise CorruptObjectError(
                f"object {self._fetch.key!a} arrived with {self._size} bytes that are not the "
                f"{entry.size} bytes of {entry.checksum}",
                remedy="run the task again; if it stays so, check the store's blocks",
            )

    def _is_right(self) -> bool:
        entry = self._fetch.entry
        if self._size != entry.size:
            return False
        return self._hash is None or f"{self._algorithm}:{self._hash.hexdigest()}" == entry.checksum

    def _unwritable(self, error: OSError) -> WorkspaceError:
        return WorkspaceError(
            f"file {self._fetch.to} cannot be written: {error.strerror}",
            remedy="check the space and the permissions of PERAGO_WORKSPACE_ROOT",
        )


class Outgoing:
    """A file that must be, to the last byte, what it was when it was compared (S3)."""

    def __init__(self, put: Put) -> None:
        self._put = put
        algorithm = put.entry.checksum.partition(":")[0]
        self._algorithm = algorithm
        self._hash = hashlib.new(algorithm, usedforsecurity=False)

    def __enter__(self) -> Self:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            self._fd = os.open(self._put.source, flags)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise UnpublishableFileError(
                    f"workspace publication does not support symlinks: {self._put.source}",
                    remedy="write a copy of the file instead",
                ) from error
            raise self._changed() from error
        if not stat.S_ISREG(os.fstat(self._fd).st_mode):
            os.close(self._fd)
            raise self._changed()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def whole(self) -> bytes:
        """Read all of it, and check it."""
        content = b"".join(self.parts(CHUNK, lambda _: None))
        self.settled()
        return content

    def parts(self, size: int, advance: Advance) -> Iterator[bytes]:
        """Read it piece by piece."""
        while chunk := os.read(self._fd, size):
            self._hash.update(chunk)
            advance(len(chunk))
            yield chunk

    def settled(self) -> None:
        """Refuse what is no longer what was compared."""
        if f"{self._algorithm}:{self._hash.hexdigest()}" != self._put.entry.checksum:
            raise self._changed()

    def agree(self, tag: str) -> None:
        """Refuse what the server got if it says so itself."""
        if len(tag) == len(self._hash.hexdigest()) and tag != self._hash.hexdigest():
            raise CorruptObjectError(
                f"object {self._put.key!a} arrived at the store as {tag}",
                remedy="run the task again",
            )

    def _changed(self) -> UnpublishableFileError:
        return UnpublishableFileError(
            f"file {self._put.source} changed while it was read",
            remedy="end every thread and process of the task before it returns",
        )
