"""The files of a cache, known by names that only we give, and reached without following a link.

``<algorithm>/<two digits>/<digest>`` is a content of its own, ``packs/<number>.pack`` holds many,
``new-<pid>-<id>`` is one on its way. Whatever else lies in the directory is not ours to touch.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from perago.errors import RuntimeConfigError
from perago.filesystem import roots, trees
from perago.transfer.creating import create_beneath, made_beneath

SUFFIX: Final = ".pack"
PACKS: Final = "packs"
TRIMMED: Final = "trimmed"
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PRIVATE_TO_READ: Final = 0o400
_SHARD: Final = re.compile(r"[0-9a-f]{2}")
_PACK: Final = re.compile(r"[0-9a-f]{16}\.pack")
_DRAFT: Final = re.compile(r"new-\d+-[0-9a-f]{32}")
_FILES: Final = re.compile(
    r"(packs|manifests)\.sqlite(-wal|-shm|-journal)?|trimmed|\.perago-root(\.\d+\.[0-9a-f]+)?"
)
_LENGTHS: Final = {
    name: 2 * hashlib.new(name, usedforsecurity=False).digest_size
    for name in hashlib.algorithms_guaranteed
    if not name.startswith("shake")
}


class CachedFile(NamedTuple):
    """A file with contents; in order, the least recently used first."""

    modified: float
    size: int
    path: str


def place_of(checksum: str) -> str | None:
    """Name the file of a content; None for a checksum that says nothing of the content."""
    algorithm, _, digest = checksum.partition(":")
    if not _is_digest(algorithm, digest):
        return None
    return f"{algorithm}/{digest[:2]}/{digest}"


class CacheFiles:
    """One directory of this user's, and what of it is a cache."""

    def __init__(self, root: Path) -> None:
        """Take a directory; refuse one that holds what is not ours."""
        roots.claim(root, roots.CACHE, _recognise)
        self.root = root.resolve()

    @contextmanager
    def top(self) -> Iterator[int]:
        """Open the directory; one that somebody removed is made again."""
        if not self.root.exists():
            self._claim_again()
        with trees.opened(self.root) as fd:
            yield fd

    def open(self, path: str, flags: int = os.O_RDONLY) -> int:
        """Open a file."""
        with self.top() as top:
            return trees.open_beneath(top, path, flags | os.O_NOFOLLOW | os.O_CLOEXEC)

    def create(self, path: str, mode: int = _PRIVATE_TO_READ) -> int:
        """Open a new file; directories above it are made."""
        with self.top() as top:
            return create_beneath(top, path, mode)

    def unlink(self, path: str) -> None:
        """Remove a file; one that is gone is fine."""
        above, _, name = path.rpartition("/")
        with suppress(FileNotFoundError), self.top() as top, _opened(top, above) as fd:
            os.unlink(name, dir_fd=fd)

    def place(self, draft: str, path: str) -> None:
        """Rename a draft into its place."""
        above, _, name = path.rpartition("/")
        with self.top() as top, made_beneath(top, above) as directory:
            os.rename(draft, name, src_dir_fd=top, dst_dir_fd=directory)

    def exists(self, path: str) -> bool:
        """Return whether there is something of that name."""
        above, _, name = path.rpartition("/")
        try:
            with self.top() as top, _opened(top, above) as fd:
                os.stat(name, dir_fd=fd, follow_symlinks=False)
        except OSError:
            return False
        return True

    def contents(self) -> list[CachedFile]:
        """List the files with contents, if the directory is still ours."""
        self._claim_again()
        with self.top() as top:
            return [kept for above, ours in _places(top) for kept in _kept(top, above, ours)]

    def drafts(self) -> list[CachedFile]:
        """List what is on its way, or was when its process died."""
        with self.top() as top:
            return list(_kept(top, "", lambda name: _DRAFT.fullmatch(name) is not None))

    def packs(self) -> list[CachedFile]:
        """List the packs; those that are there, whoever wrote them."""
        with self.top() as top:
            return list(_kept(top, PACKS, _is_pack))

    def _claim_again(self) -> None:
        try:
            roots.claim(self.root, roots.CACHE, _recognise)
        except RuntimeConfigError as error:
            raise OSError(error.message) from error


def new_draft() -> str:
    """Name a content on its way."""
    return f"new-{os.getpid()}-{uuid.uuid4().hex}"


def _is_digest(algorithm: str, digest: str) -> bool:
    length = _LENGTHS.get(algorithm)
    return length is not None and re.fullmatch(rf"[0-9a-f]{{{length}}}", digest) is not None


def _is_pack(name: str) -> bool:
    return _PACK.fullmatch(name) is not None


@contextmanager
def _opened(top: int, path: str) -> Iterator[int]:
    fd = trees.open_beneath(top, path, _DIRECTORY) if path else os.dup(top)
    try:
        yield fd
    finally:
        os.close(fd)


def _names(top: int, path: str) -> list[str]:
    """List a directory; a link, a file or nothing in its place has no names."""
    try:
        with _opened(top, path) as fd:
            return os.listdir(fd)  # noqa: PTH208 - by descriptor
    except OSError:
        return []


def _places(top: int) -> Iterator[tuple[str, Callable[[str], bool]]]:
    """Name the directories that hold contents, each with what tells its files."""
    yield PACKS, _is_pack
    for algorithm in _LENGTHS:
        for shard in _names(top, algorithm):
            if _SHARD.fullmatch(shard):
                yield f"{algorithm}/{shard}", partial(_is_content, algorithm, shard)


def _is_content(algorithm: str, shard: str, name: str) -> bool:
    return name.startswith(shard) and _is_digest(algorithm, name)


def _kept(top: int, above: str, ours: Callable[[str], bool]) -> Iterator[CachedFile]:
    for name in filter(ours, _names(top, above)):
        path = f"{above}/{name}" if above else name
        with suppress(OSError), _opened(top, above) as fd:
            found = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if stat.S_ISREG(found.st_mode):
                yield CachedFile(found.st_mtime, found.st_size, path)


def _recognise(root: Path) -> bool:
    """Tell a cache of an earlier version: there is nothing in it that we would not have made."""
    try:
        with trees.opened(root.resolve()) as top:
            return all(_is_ours(top, name) for name in _names(top, ""))
    except OSError:
        return False


def _is_ours(top: int, name: str) -> bool:
    if name == PACKS:
        return all(map(_is_pack, _names(top, name)))
    if name in _LENGTHS:
        return all(
            _SHARD.fullmatch(shard)
            and all(map(partial(_is_content, name, shard), _names(top, f"{name}/{shard}")))
            for shard in _names(top, name)
        )
    return bool(_FILES.fullmatch(name) or _DRAFT.fullmatch(name))
