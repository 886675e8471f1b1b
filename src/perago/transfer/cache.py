"""Contents this machine has seen, by checksum: the next step of a pipeline downloads nothing.

One directory, shared by all workers of a user. What is read is verified, always, so it need not be
verified when it is written: half a content, or a damaged one, is found, forgotten and fetched
again. Contents are copied in and out, never linked: a task may write to its own file. Small ones
stand many to a file, big ones each in their own. When the cache is too big, the least recently used
go first.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from perago.errors import UnpublishableFileError
from perago.ports import Advance
from perago.protocol.values import Entry
from perago.transfer import copying, trimming
from perago.transfer.background_copies import BackgroundCopies
from perago.transfer.cache_files import CacheFiles, new_draft, place_of
from perago.transfer.creating import create
from perago.transfer.packs import PACK_BYTES, PACKED_BYTES, PackReader, Packs

_RECENT_SECONDS = 600  # Used again so soon, a file keeps its time: one call less per file.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class CachedContents:
    """Some contents, looked up together, to be copied out one by one."""

    def __init__(self, cache: ContentCache, packed: PackReader, contents: dict[str, str]) -> None:
        self._cache = cache
        self._packed = packed
        self._contents = contents

    def fetch(self, entry: Entry, to: Path, advance: Advance) -> bool:
        """Copy a content to a new file; False when it is not here, or not whole."""
        content = self._contents.get(_tag(entry))
        if content is not None:
            entry = Entry(entry.size, content)
        if entry.size > PACKED_BYTES:
            return self._cache.copy_out(entry, to, advance)
        key = _key(entry)
        place = self._packed.place(key) if key else None
        if key is None or place is None:
            return False
        found = self._packed.read(place, entry.size)
        if copying.entry_of(found, entry.checksum.partition(":")[0]) != entry:
            self._cache.packs.index.forget(key, place)
            return False
        target = create(to)
        try:
            copying.write_all(target, memoryview(found))
        finally:
            os.close(target)
        if self._packed.is_old(place):
            self._cache.packs.put(key, found, again=True)
        advance(entry.size)
        return True


class ContentCache:
    """At most ``max_bytes`` of file contents below ``root``, which must be ours or new."""

    def __init__(self, root: Path, max_bytes: int) -> None:
        self._files = CacheFiles(root)
        self._max_bytes = max_bytes
        self._background = BackgroundCopies()
        self.packs = Packs(self._files, min(PACK_BYTES, max_bytes // 16))
        self._size = trimming.Size(self._files, max_bytes, self.packs)

    @contextmanager
    def reading(self, entries: Iterable[Entry]) -> Iterator[CachedContents]:
        """Look contents up, to copy those out that are here."""
        self._background.wait()
        wanted = list(entries)
        keys = _keys(wanted)
        with ExitStack() as stack:
            packed = stack.enter_context(self.packs.reading(keys, self._size.horizon()))
            names = [_tag(entry) for entry in wanted if not packed.place(_key(entry) or b"")]
            contents = self.packs.index.contents_of(names)
            if contents:  # Known by another name: what it stands for is looked up as well.
                known = [(entry.size, contents.get(_tag(entry))) for entry in wanted]
                keys += _keys(Entry(size, content) for size, content in known if content)
                packed = stack.enter_context(self.packs.reading(keys, self._size.horizon()))
            yield CachedContents(self, packed, contents)

    def put(self, entry: Entry, content: bytes | memoryview) -> None:
        """Remember a small content; quietly does nothing where that is not possible.

        A file of its own is written in place, at once: whoever meets half of it takes it for
        damaged.
        """
        place = self._place(entry)
        if place is None or not self._fits(entry):
            return
        if entry.size <= PACKED_BYTES:
            self.packs.put(_key(entry) or b"", content)
        else:
            try:
                target = self._files.create(place)
                try:
                    copying.write_all(target, memoryview(content))
                finally:
                    os.close(target)
            except OSError:
                return
        self._size.grew(entry.size)

    def keep(self, entry: Entry, source: Path, opens: Callable[[], int] | None = None) -> None:
        """Remember a file's content, as above, a big one by and by.

        What the file's owner writes to it meanwhile is noticed, or found out when it is read.
        """
        place = self._place(entry)
        if place is None or not self._fits(entry):
            return
        try:
            reading = os.open(source, _READ) if opens is None else opens()
        except (OSError, UnpublishableFileError):
            return
        if entry.size > PACKED_BYTES:
            before = _stamp(reading)
            self._background.give(lambda: self._copy_in(entry, place, reading, before))
            return
        try:
            self.put(entry, os.read(reading, entry.size))
        finally:
            os.close(reading)

    def also(self, entry: Entry, content: str) -> None:
        """Remember that an entry, whose checksum is another's tag, is this content."""
        self.packs.index.also(_tag(entry), content)

    def content(self, entry: Entry) -> Entry:
        """Return what content an entry is; itself where nothing else is known."""
        tag = _tag(entry)
        return Entry(entry.size, self.packs.index.contents_of([tag]).get(tag, entry.checksum))

    def settle(self) -> None:
        """Write down what small contents came, and begin to copy the big ones."""
        self.packs.drain()
        self._background.go()
        self._size.settle()

    def trim(self) -> int:
        """Remove the least recently used until there is room again; returns the bytes freed."""
        return self._size.trim()

    def close(self) -> None:
        """Finish what was begun."""
        self._background.close()
        self.packs.close()

    def copy_out(self, entry: Entry, to: Path, advance: Advance) -> bool:
        """Copy a big content to a new file; it is not there when this returns False."""
        place = self._place(entry)
        if place is None:
            return False
        try:
            source = self._files.open(place)
        except OSError:
            return False
        try:
            found = os.fstat(source)
            whole = found.st_size == entry.size and _copied(source, to, entry, advance)
            if time.time() - found.st_mtime > _RECENT_SECONDS:
                os.utime(source)
        finally:
            os.close(source)
        if not whole:
            with suppress(OSError):
                self._files.unlink(place)
        return whole

    def _copy_in(self, entry: Entry, place: str, source: int, before: tuple[int, int, int]) -> None:
        """Make a copy beside its place and rename it: it takes long enough to be met half-way."""
        draft = new_draft()
        try:
            if self._files.exists(place):
                return
            target = self._files.create(draft)
            try:
                copying.move(source, target)
            finally:
                os.close(target)
            if _stamp(source) != before:
                self._files.unlink(draft)
                return
            self._files.place(draft, place)
        except OSError:
            with suppress(OSError):
                self._files.unlink(draft)
            return
        finally:
            os.close(source)
        self._size.grew(entry.size)
        self._size.settle()

    def _fits(self, entry: Entry) -> bool:
        return 0 < self._max_bytes >= entry.size

    def _place(self, entry: Entry) -> str | None:
        """Name the file of a content; None for a checksum that says nothing of the content."""
        return place_of(entry.checksum)


def _copied(source: int, to: Path, entry: Entry, advance: Advance) -> bool:
    target = create(to)
    try:
        found = copying.copy(source, target, entry.size, advance, entry.checksum.partition(":")[0])
    finally:
        os.close(target)
    if found != entry:
        to.unlink()
    return found == entry


def _keys(entries: Iterable[Entry]) -> list[bytes]:
    """Name the contents that stand in packs."""
    keys = [_key(entry) for entry in entries if entry.size <= PACKED_BYTES]
    return [key for key in keys if key]


def _key(entry: Entry) -> bytes | None:
    """Write a checksum short; None for one that says nothing of the content."""
    algorithm, _, digest = entry.checksum.partition(":")
    if algorithm not in hashlib.algorithms_guaranteed:
        return None
    try:
        return algorithm.encode() + bytes.fromhex(digest)
    except ValueError:
        return None


def _tag(entry: Entry) -> str:
    return f"{entry.size}:{entry.checksum}"


def _stamp(fd: int) -> tuple[int, int, int]:
    found = os.fstat(fd)
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns
