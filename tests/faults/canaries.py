"""What no attempt may touch or tell: a tree beside its directory, and the worker's key (V6, V8)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.canary import traces

FILES = {"data.bin": b"not yours" * 100, "deep/er/notes.txt": b"nor this", "empty": b""}
LONG_AGO = 978307200.0
"""Files were read before they were written, so that whoever reads one leaves a mark on it."""


@dataclass
class CanaryTree:
    """Files outside of every attempt; whatever changes or reads them is found."""

    root: Path
    _before: dict[str, tuple[object, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, content in FILES.items():
            file = self.root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            file.chmod(0o640)
            os.utime(file, (LONG_AGO, LONG_AGO + 1))
        (self.root / "link").symlink_to("data.bin")
        self._before = dict(self._look())

    def findings(self) -> list[str]:
        """Name what is not as it was."""
        now = dict(self._look())
        names = sorted(now.keys() | self._before.keys())
        return [
            f"V6: {self.root / name} outside of the attempt was {self._before.get(name)} and is"
            f" {now.get(name)}"
            for name in names
            if now.get(name) != self._before.get(name)
        ]

    def _look(self) -> Iterator[tuple[str, tuple[object, ...]]]:
        for path in sorted((self.root, *self.root.rglob("*"))):
            found = path.lstat()
            stamps = (found.st_mode, found.st_uid, found.st_mtime_ns, found.st_ctime_ns)
            name = str(path.relative_to(self.root))
            if path.is_dir() or path.is_symlink():  # Listing them is reading, and we do.
                yield name, stamps
            else:
                yield name, (*stamps, found.st_atime_ns, _unseen(path))


def _unseen(path: Path) -> bytes:
    """Read a file without a trace."""
    handle = os.open(path, os.O_RDONLY | os.O_NOATIME)
    with os.fdopen(handle, "rb") as file:
        return file.read()


@dataclass
class CanaryKey:
    """A key in the worker's reach; it may be written nowhere."""

    key: str
    _seen: dict[Path, tuple[int, int]] = field(default_factory=dict)

    def is_in(self, content: bytes) -> bool:
        """Tell whether something holds the key, however it is written."""
        return any(spelling in content for spelling in traces(self.key).values())

    def findings(self, places: Iterable[Path]) -> list[str]:
        """Look through files; one that has not changed since is not read again."""
        return [
            f"V8: the key is in {path}"
            for place in places
            for path in _files(place)
            if self._is_new(path) and self.is_in(_read(path))
        ]

    def _is_new(self, path: Path) -> bool:
        try:
            found = path.lstat()
        except OSError:
            return False
        stamp = (found.st_mtime_ns, found.st_size)
        if not path.is_file() or path.is_symlink() or self._seen.get(path) == stamp:
            return False
        self._seen[path] = stamp
        return True


def _files(place: Path) -> Iterator[Path]:
    """Walk the files of a place; directories of attempts come and go meanwhile."""
    if place.is_file():
        yield place
    for directory, _, names in os.walk(place):
        yield from (Path(directory) / name for name in names)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # It went away, or is nobody's to read.
        return b""
