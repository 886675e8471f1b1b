"""Both ends of a transfer on this machine: new files are verified, old ones must hold still."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from hashlib import algorithms_guaranteed
from hashlib import new as new_hash
from types import TracebackType
from typing import Self

from perago.errors import CorruptObjectError, UnpublishableFileError, WorkspaceError
from perago.ports import Advance, Fetch, Put
from perago.protocol.values import Entry
from perago.stores.lakefs.tags import is_tag_of_parts, parts_of
from perago.transfer.cache import ContentCache
from perago.transfer.copying import entry_of, write_all
from perago.transfer.creating import create
from perago.transfer.hashing import Hashing

CHUNK = 1 << 20
SMALLEST_PART = 5 << 20


def receive(fetch: Fetch, content: memoryview, cache: ContentCache) -> None:
    """Write a new file that arrived in one piece; nothing is written before it is right (D3)."""
    entry = fetch.entry
    if len(content) != entry.size:
        raise _corrupt(fetch, len(content))
    algorithm = entry.checksum.partition(":")[0]
    known = algorithm in algorithms_guaranteed
    found = entry_of(content, algorithm) if known else entry
    if found != entry and not is_tag_of_parts(entry.checksum, _digest(found)):
        raise _corrupt(fetch, len(content))
    try:
        target = create(fetch.to)
        try:
            write_all(target, content)
        finally:
            os.close(target)
    except OSError as error:
        raise _unwritable(fetch, error) from error
    cache.put(found, content)
    if found != entry:
        cache.also(entry, found.checksum)


class IncomingFile:
    """A new file that is removed again unless it turns out to be what was promised (D3)."""

    def __init__(self, fetch: Fetch, cache: ContentCache) -> None:
        self._fetch = fetch
        self._cache = cache
        self._size = 0
        algorithm = fetch.entry.checksum.partition(":")[0]
        known = algorithm in algorithms_guaranteed
        self._hash = Hashing(algorithm, fetch.entry.size) if known else None
        self._count = 0

    def told(self, tag: str) -> None:
        """Hear the block store's own tag: it alone says of how many parts an object was made."""
        listed = self._fetch.entry.checksum.partition(":")[2]
        self._count = parts_of(tag.strip('"'), listed)

    def __enter__(self) -> Self:
        try:
            self._fd = create(self._fetch.to)
        except OSError as error:
            raise _unwritable(self._fetch, error) from error
        return self

    def take(self, chunk: memoryview | bytes) -> None:
        """Write the next bytes."""
        if self._hash is not None:
            self._hash.update(chunk)
        self._size += len(chunk)
        try:
            write_all(self._fd, memoryview(chunk))
        except OSError as error:
            raise _unwritable(self._fetch, error) from error

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._fd)
        if kind is None and self._size == self._fetch.entry.size and self._is_right():
            return
        self._fetch.to.unlink(missing_ok=True)
        if kind is None:
            raise _corrupt(self._fetch, self._size)

    def _is_right(self) -> bool:
        """Compare with what was promised, and remember what is."""
        if self._hash is None:
            return True  # The store says nothing of the content: its size is all there is.
        entry = self._fetch.entry
        found = Entry(self._size, self._hash.checksum)
        if found != entry:
            digest = self._hash.digest()
            if not is_tag_of_parts(entry.checksum, digest, self._fetch.to, self._count):
                # D3: the store itself says that this is no checksum of the content, so there is
                # none. Without its word it is one, and the content is not.
                return self._count > 1
            self._cache.also(entry, found.checksum)
        self._cache.keep(found, self._fetch.to)
        return True


def _digest(entry: Entry) -> bytes:
    return bytes.fromhex(entry.checksum.partition(":")[2])


def _corrupt(fetch: Fetch, size: int) -> CorruptObjectError:
    remedy = "run the task again; if it stays so, check the store's blocks"
    if size == fetch.entry.size > SMALLEST_PART:
        remedy += ", or write it anew if it was uploaded in parts of an unusual length"
    return CorruptObjectError(
        f"object {fetch.key!a} arrived with {size} bytes that are not the "
        f"{fetch.entry.size} bytes of {fetch.entry.checksum}",
        remedy=remedy,
    )


def _unwritable(fetch: Fetch, error: OSError) -> WorkspaceError:
    return WorkspaceError(
        f"file {fetch.to} cannot be written: {error.strerror}",
        remedy="check the space and the permissions of PERAGO_WORKSPACE_ROOT",
    )


class OutgoingFile:
    """A file that must be, to the last byte, what it was when it was compared (S3)."""

    def __init__(self, put: Put) -> None:
        self._put = put
        algorithm = put.entry.checksum.partition(":")[0]
        self._algorithm = algorithm
        self._hash = Hashing(algorithm, put.entry.size)
        self._parts = new_hash(algorithm, usedforsecurity=False)

    def __enter__(self) -> Self:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            opens = self._put.opens
            self._fd = os.open(self._put.source, flags) if opens is None else opens()
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

    def unhashed(self, size: int, advance: Advance) -> Iterator[bytes]:
        """Read it piece by piece, exactly as long as it was; ``answered`` looks what it was."""
        left = self._put.entry.size
        while chunk := os.read(self._fd, size if left else 1):
            left -= len(chunk)
            if left < 0:
                break
            advance(len(chunk))
            yield chunk
        if left:
            raise self._changed()

    def answered(self, tag: str) -> None:
        """Refuse what is no longer what was compared, or did not arrive so.

        The server hashes what it gets: where its tag is that hash, ours would tell nothing new.
        """
        if f"{self._algorithm}:{tag}" == self._put.entry.checksum:
            return
        os.lseek(self._fd, 0, os.SEEK_SET)
        for _ in self.parts(CHUNK, lambda _: None):
            pass
        self.settled()
        self.agree(tag)

    def parts(self, size: int, advance: Advance) -> Iterator[bytes]:
        """Read it piece by piece."""
        while chunk := os.read(self._fd, size):
            self._hash.update(chunk)
            advance(len(chunk))
            yield chunk

    def uploads(self, size: int, advance: Advance) -> Iterator[bytes]:
        """Read it piece by piece, each to be sent as a part of its own."""
        for chunk in self.parts(size, advance):
            part = new_hash(self._algorithm, chunk, usedforsecurity=False)
            self._parts.update(part.digest())
            yield chunk

    def united(self, tag: str) -> None:
        """Refuse what is no longer what was compared, or did not arrive so, part by part."""
        self.settled()
        tag = tag.partition("-")[0]
        if len(tag) == len(self._parts.hexdigest()) and tag != self._parts.hexdigest():
            raise CorruptObjectError(
                f"object {self._put.key!a} arrived at the store as {tag}",
                remedy="run the task again",
            )

    def settled(self) -> None:
        """Refuse what is no longer what was compared."""
        if self._hash.checksum != self._put.entry.checksum:
            raise self._changed()

    def agree(self, tag: str) -> None:
        """Refuse what the server got if it says so itself."""
        self.arrived(tag, self._hash.digest().hex())

    def arrived(self, tag: str, digest: str) -> None:
        """Refuse bytes whose tag is another hash than theirs."""
        if len(tag) == len(digest) and tag != digest:
            raise CorruptObjectError(
                f"object {self._put.key!a} arrived at the store as {tag}",
                remedy="run the task again",
            )

    def _changed(self) -> UnpublishableFileError:
        return UnpublishableFileError(
            f"file {self._put.source} changed while it was read",
            remedy="end every thread and process of the task before it returns",
        )
