"""Small contents, many to a file: making a file for each would cost more than fetching them.

A process appends to a pack that it alone holds, and says where a content is only when it is there.
Killed at any point it leaves bytes that nobody reads, and a pack that the next one goes on with.
"""

from __future__ import annotations

import fcntl
import os
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from perago.transfer import copying
from perago.transfer.cache_files import PACKS, SUFFIX, CacheFiles
from perago.transfer.index import Index, Place

PACKED_BYTES = 64 << 10
"""Contents up to this size are packed."""
PACK_BYTES = 64 << 20
_DRAIN_BYTES = 4 << 20
_CANDIDATES = 8
_PRIVATE = 0o600


class PackReader:
    """The packs that some contents are in, open."""

    def __init__(self, places: dict[bytes, Place], opened: dict[int, int], fresh: set[int]) -> None:
        self._places = places
        self._opened = opened
        self._fresh = fresh

    def place(self, key: bytes) -> Place | None:
        """Return where a content should be."""
        return self._places.get(key)

    def read(self, place: Place, size: int) -> bytes:
        """Read what is there; less, or anything, when the pack was damaged."""
        pack, at = place
        return os.pread(self._opened[pack], size, at) if pack in self._opened else b""

    def is_old(self, place: Place) -> bool:
        """Return whether a pack is among those that go soon."""
        return place[0] not in self._fresh


class Packs:
    """The packs below one directory, and their index; threads may share it."""

    def __init__(self, files: CacheFiles, pack_bytes: int = PACK_BYTES) -> None:
        self._files = files
        self.index = Index(f"{files.root}/packs.sqlite")
        self._pack_bytes = pack_bytes
        self._waiting: list[tuple[bytes, bytes, bool]] = []
        self._waiting_bytes = 0
        self._turn = threading.Lock()
        self._writing = threading.Lock()
        self._own = -1
        self._number = 0
        self._owner = 0

    @contextmanager
    def reading(self, keys: Sequence[bytes], horizon: float) -> Iterator[PackReader]:
        """Find contents; what is in a pack last written to before ``horizon`` is old."""
        places = self.index.places(keys) if keys else {}
        opened: dict[int, int] = {}
        fresh: set[int] = set()
        try:
            for pack in {pack for pack, _ in places.values()}:
                with suppress(OSError):
                    opened[pack] = self._files.open(_path(pack))
                    if os.fstat(opened[pack]).st_mtime > horizon:
                        fresh.add(pack)
            yield PackReader(places, opened, fresh)
        finally:
            for fd in opened.values():
                os.close(fd)

    def put(self, key: bytes, content: bytes | memoryview, *, again: bool = False) -> None:
        """Take a content; it is written with others, at the latest by ``drain``.

        ``again``: also where it is known, because that place goes soon.
        """
        with self._turn:
            self._waiting.append((key, bytes(content), again))
            self._waiting_bytes += len(content)
            if self._waiting_bytes < _DRAIN_BYTES:
                return
        self.drain()

    def drain(self) -> None:
        """Write what waits, then say where it is; quietly nothing where that is not possible."""
        with self._writing:
            with self._turn:
                waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
            if not waiting:
                return
            known = self.index.places([key for key, _, again in waiting if not again])
            wanted = {key: content for key, content, again in waiting if again or key not in known}
            with suppress(OSError):
                self._append(wanted)

    def forget_missing(self) -> None:
        """Forget what was in packs that are gone."""
        with suppress(OSError):
            self.index.keep_only([_number(pack.path) for pack in self._files.packs()])

    def close(self) -> None:
        """Write what waits and let go of the pack."""
        self.drain()
        with self._writing:
            self._leave()
        self.index.close()

    def _append(self, contents: dict[bytes, bytes]) -> None:
        if not contents:
            return
        fd = self._hold()
        rows = []
        end = os.lseek(fd, 0, os.SEEK_END)
        for key, content in contents.items():
            rows.append((key, self._number, end))
            end += len(content)
        copying.write_all(fd, memoryview(b"".join(contents.values())))
        self.index.add(rows)
        if end > self._pack_bytes:
            self._leave()

    def _hold(self) -> int:
        """Hold a pack of one's own: still the same, one that somebody left, or a new one."""
        if self._owner != os.getpid():
            self._own = -1  # What was held is the parent's.
        if self._own >= 0 and os.fstat(self._own).st_nlink:
            return self._own
        self._leave()
        self._owner = os.getpid()
        for number in self._left_over():
            if self._take(number):
                return self._own
        self._number = uuid.uuid4().int >> 65
        self._own = self._files.create(_path(self._number), _PRIVATE)
        with suppress(OSError):  # Where files cannot be locked nobody else takes it either.
            fcntl.flock(self._own, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return self._own

    def _left_over(self) -> list[int]:
        """Find a few packs with room, the emptiest first."""
        sizes = sorted((pack.size, _number(pack.path)) for pack in self._files.packs())
        return [number for size, number in sizes if size < self._pack_bytes][:_CANDIDATES]

    def _take(self, number: int) -> bool:
        try:
            fd = self._files.open(_path(number), os.O_RDWR)
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            return False
        if not os.fstat(fd).st_nlink:
            os.close(fd)
            return False
        self._own, self._number = fd, number
        return True

    def _leave(self) -> None:
        if self._own >= 0 and self._owner == os.getpid():
            os.close(self._own)
        self._own = -1


def _path(number: int) -> str:
    return f"{PACKS}/{number:016x}{SUFFIX}"


def _number(path: str) -> int:
    return int(path.removeprefix(f"{PACKS}/").removesuffix(SUFFIX), 16)
