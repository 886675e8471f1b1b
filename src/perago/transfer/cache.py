"""Contents this machine has seen, by checksum: the next step of a pipeline downloads nothing.

One directory, shared by all workers of a user. What is read is verified, always, so it need not be
verified when it is written: half a file, or a damaged one, is found, removed and fetched again.
Contents are copied out, never linked: a task may write to its own file. When the cache is too big,
the least recently used go first.
"""

from __future__ import annotations

import hashlib
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from perago.ports import Advance
from perago.protocol.values import Entry
from perago.transfer import copying

_TRIM_TO = 0.9
_READ_ONLY = 0o444
_SMALL = copying.CHUNK
_RECENT_SECONDS = 600  # Used again so soon, a file keeps its time: one call less per file.
_OFTEN_SECONDS = 3600
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Arrival:
    """One content on its way into the cache, written while it comes; any trouble ends it quietly.

    It takes long enough to be met half-way, so it comes beside its place and is renamed.
    """

    def __init__(self, cache: ContentCache, entry: Entry) -> None:
        self._cache = cache
        self._entry = entry
        self._fd = -1
        self._draft = ""

    def start(self) -> None:
        """Begin, or begin again."""
        with suppress(OSError):
            self._draft, self._fd = self._cache.draft(self._entry)

    def take(self, chunk: memoryview) -> None:
        """Write the next bytes."""
        if self._fd >= 0:
            try:
                copying.write_all(self._fd, chunk)
            except OSError:
                self.stop()

    def copy(self, source: int) -> None:
        """Take all of a file."""
        if self._fd >= 0:
            try:
                copying.move(source, self._fd)
            except OSError:
                self.stop()

    def done(self) -> None:
        """Keep it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            self._cache.admit(self._entry, self._draft)

    def stop(self) -> None:
        """Give it up."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            with suppress(OSError):
                os.unlink(self._draft)  # noqa: PTH108 - a plain string

    def whole(self, content: bytes | memoryview) -> None:
        """Keep what came in one piece."""
        self._cache.put(self._entry, content)


class ContentCache:
    """At most ``max_bytes`` of file contents below ``root``."""

    def __init__(self, root: Path, max_bytes: int) -> None:
        self._root = os.fspath(root)
        self._max_bytes = max_bytes
        # The first arrival looks whether it is time: short-lived workers fill a cache too.
        self._arrived = max_bytes
        self._trimmed = Path(root) / "trimmed"

    def fetch(self, entry: Entry, to: Path, advance: Advance) -> bool:
        """Copy a content to a new file; False when it is not here, or not whole."""
        place = self._place(entry)
        if place is None:
            return False
        try:
            source = os.open(place, _READ)
        except OSError:
            return False
        try:
            found = os.fstat(source)
            whole = found.st_size == entry.size and self._copy_out(source, to, entry, advance)
            if time.time() - found.st_mtime > _RECENT_SECONDS:
                os.utime(source)
        finally:
            os.close(source)
        if not whole:
            with suppress(FileNotFoundError):
                os.unlink(place)  # noqa: PTH108 - a hot loop over plain strings
        return whole

    def arrival(self, entry: Entry) -> Arrival:
        """Prepare to remember a content that is going to be downloaded."""
        return Arrival(self, entry)

    def put(self, entry: Entry, content: bytes | memoryview) -> None:
        """Remember a small content; quietly does nothing where that is not possible.

        It is written in place, at once: whoever meets half of it takes it for damaged.
        """
        place = self._place(entry)
        if place is None or entry.size > self._max_bytes:
            return
        try:
            target = _create(place, _READ_ONLY)
            try:
                copying.write_all(target, memoryview(content))
            finally:
                os.close(target)
        except OSError:
            return
        self._count(entry)

    def keep(self, entry: Entry, source: Path) -> None:
        """Remember a file's content, as above."""
        arrival = self.arrival(entry)
        try:
            reading = os.open(source, _READ)
        except OSError:
            return
        try:
            arrival.start()
            arrival.copy(reading)
        finally:
            os.close(reading)
        arrival.done()

    def adopt(self, entry: Entry, source: Path) -> None:
        """Remember the content of a file that its task is done with, without copying it.

        The task's directory goes soon; whoever still writes to the file damages only this copy,
        which is found out when it is read.
        """
        place = self._place(entry)
        if place is None or entry.size > self._max_bytes:
            return
        try:
            os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)  # noqa: PTH103, PTH120
            os.link(source, place, follow_symlinks=False)
            os.chmod(place, _READ_ONLY)  # noqa: PTH101 - a plain string
            os.utime(place)
        except FileExistsError:
            return
        except OSError:
            self.keep(entry, source)  # Another file system, or one without links.
            return
        self._count(entry)

    def trim(self) -> int:
        """Remove the least recently used until there is room again; returns the bytes freed."""
        with suppress(OSError):
            self._trimmed.touch()
            for draft in Path(self._root).glob("new-*"):
                if time.time() - draft.stat().st_mtime > _OFTEN_SECONDS:
                    draft.unlink()  # Its process is gone, or will notice.
        found = sorted(self._files())
        total = sum(size for _, size, _ in found)
        freed = 0
        for _, size, path in found:
            if total - freed <= self._max_bytes * _TRIM_TO:
                break
            with suppress(OSError):
                path.unlink()
                freed += size
        return freed

    def _copy_out(self, source: int, to: Path, entry: Entry, advance: Advance) -> bool:
        """Write a new file; it is not there when this returns False."""
        if entry.size > _SMALL:
            return self._copy_out_big(source, to, entry, advance)
        content = os.read(source, entry.size + 1)
        if copying.entry_of(content, entry.checksum.partition(":")[0]) != entry:
            return False
        target = _create(to)
        try:
            copying.write_all(target, memoryview(content))
        finally:
            os.close(target)
        advance(entry.size)
        return True

    def _copy_out_big(self, source: int, to: Path, entry: Entry, advance: Advance) -> bool:
        algorithm = entry.checksum.partition(":")[0]
        target = _create(to)
        try:
            found = copying.copy(source, target, entry.size, advance, algorithm)
        finally:
            os.close(target)
        if found != entry:
            to.unlink()
        return found == entry

    def draft(self, entry: Entry) -> tuple[str, int]:
        """Open a new file for a content; ``OSError`` where it is not wanted or not possible."""
        place = self._place(entry)
        if place is None or entry.size > self._max_bytes or os.path.exists(place):  # noqa: PTH110
            raise FileExistsError
        draft = f"{self._root}/new-{os.getpid()}-{uuid.uuid4().hex}"
        return draft, _create(draft, _READ_ONLY)

    def admit(self, entry: Entry, draft: str) -> None:
        """Give a draft its place."""
        place = self._place(entry) or draft
        try:
            os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)  # noqa: PTH103, PTH120
            os.rename(draft, place)  # noqa: PTH104 - plain strings
        except OSError:
            with suppress(OSError):
                os.unlink(draft)  # noqa: PTH108 - as above
            return
        self._count(entry)

    def _count(self, entry: Entry) -> None:
        self._arrived += entry.size
        if self._arrived > self._max_bytes // 10:
            first = self._arrived > self._max_bytes
            self._arrived = 0
            if not first or self._is_time():
                self.trim()

    def _is_time(self) -> bool:
        """Tell whether nobody has trimmed for a while."""
        try:
            return time.time() - self._trimmed.stat().st_mtime > _OFTEN_SECONDS
        except OSError:
            return True

    def _place(self, entry: Entry) -> str | None:
        """Name the file of a content; None for a checksum that says nothing of the content."""
        algorithm, _, digest = entry.checksum.partition(":")
        if algorithm not in hashlib.algorithms_guaranteed or not digest.isalnum():
            return None
        return f"{self._root}/{algorithm}/{digest[:2]}/{digest}"

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        for path in Path(self._root).glob("*/*/*"):
            with suppress(OSError):
                found = path.stat()
                yield found.st_mtime, found.st_size, path


def _create(to: str | Path, mode: int = 0o644) -> int:
    try:
        return os.open(to, _CREATE, mode)
    except FileNotFoundError:
        # A directory of the cache is this user's alone; a task's is as its umask says.
        private = 0o700 if mode == _READ_ONLY else 0o777
        os.makedirs(os.path.dirname(to), mode=private, exist_ok=True)  # noqa: PTH103, PTH120
        return os.open(to, _CREATE, mode)
