"""The object directory: immutable files named by their SHA-256."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from perago.filesystem import trees
from perago.protocol.values import Entry
from perago.stores.embedded import durability, locks
from perago.stores.embedded.ranges import hex_of

UPLOAD_WAIT_SECONDS = 300.0
_READ_ONLY = 0o400
_PRIVATE = 0o700
_SHARD = re.compile(r"[0-9a-f]{2}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_ARRIVAL = re.compile(r"\d+-[0-9a-f]{32}")


class ObjectDirectory:
    """Files that are written once and read many times."""

    def __init__(self, root: Path) -> None:
        self.objects = root / "objects"
        self.incoming = root / "incoming"
        self._lock = root / "uploads.lock"
        for directory in (self.objects, self.incoming):
            directory.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)

    def uploading(self) -> AbstractContextManager[None]:
        """Keep the sweep away from the arrival of an object until the row that needs it."""
        return locks.held(self._lock, exclusive=False, timeout_seconds=UPLOAD_WAIT_SECONDS)

    def sweeping(self, timeout_seconds: float) -> AbstractContextManager[None]:
        """Keep uploads away."""
        return locks.held(self._lock, exclusive=True, timeout_seconds=timeout_seconds)

    def path(self, entry: Entry) -> Path:
        """Return where an object is, or would be."""
        digest = hex_of(entry.checksum)
        return self.objects / digest[:2] / digest

    def holds(self, entry: Entry) -> bool:
        """Return whether the file of an object is there in its full length."""
        try:
            return self.path(entry).stat().st_size == entry.size
        except OSError:
            return False

    @contextmanager
    def arrival(self) -> Iterator[IncomingObject]:
        """Open a private file on the way in; it is gone after the block unless it was placed."""
        arrival = IncomingObject(self)
        try:
            yield arrival
        finally:
            os.close(arrival.handle)
            with suppress(FileNotFoundError):
                arrival.path.unlink()

    def flush(self) -> None:
        """Put all objects on disk, before a row says that they are there."""
        durability.flush(self.objects)

    def stored(self) -> Iterator[tuple[str, Path]]:
        """Walk the object files: digest and place. What has another name is not ours."""
        for shard in sorted(self.objects.iterdir()):
            if _SHARD.fullmatch(shard.name) and not shard.is_symlink():
                for path in sorted(shard.iterdir()):
                    if _DIGEST.fullmatch(path.name) and path.name.startswith(shard.name):
                        yield path.name, path

    def arriving(self) -> list[Path]:
        """List the files on the way in, also those whose process died."""
        return sorted(path for path in self.incoming.iterdir() if _ARRIVAL.fullmatch(path.name))

    @staticmethod
    def discard(path: Path) -> None:
        """Remove a file of ours; its directory is the one that was walked, no link to another."""
        with suppress(FileNotFoundError), trees.opened(path.parent) as directory:
            os.unlink(path.name, dir_fd=directory)


class IncomingObject:
    """A file on its way into the object directory."""

    def __init__(self, directory: ObjectDirectory) -> None:
        self._directory = directory
        self.path = directory.incoming / f"{os.getpid()}-{uuid.uuid4().hex}"
        self.handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)

    def place(self, entry: Entry) -> None:
        """Make it an object; one that is already there has the same content, or is torn."""
        os.fchmod(self.handle, _READ_ONLY)
        place = self._directory.path(entry)
        try:
            self._link(place)
        except FileNotFoundError:
            place.parent.mkdir(mode=_PRIVATE, exist_ok=True)
            self._link(place)

    def _link(self, place: Path) -> None:
        try:
            os.link(self.path, place)
        except FileNotFoundError:
            raise
        except OSError:  # It is there, or links are not: a name that may be promised already
            os.fsync(self.handle)  # must not stand for bytes that a power cut would take.
            self.path.rename(place)
