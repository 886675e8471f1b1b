"""A directory that is filled out of sight: its files appear when all of them are there.

They arrive in a part of it that other users cannot enter, so that a link which another process put
into the directory cannot lead them elsewhere. Nothing that is there is ever replaced.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from perago.errors import UsageError
from perago.filesystem import trees
from perago.transfer.creating import made_beneath

_NAME: Final = re.compile(r"\.perago-checkout-[0-9a-f]{32}")
_TREE: Final = "tree"
_TRIES: Final = "tries"
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TAKEN: Final = frozenset({errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR})
_NO_LINKS: Final = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


def refuse_used(directory: Path) -> None:
    """Refuse to fill a directory that holds anything but what a dead checkout left."""
    if not directory.exists():
        return
    if not directory.is_dir():
        raise UsageError(f"{directory} is not a directory", remedy="name a new directory")
    for name in sorted(path.name for path in directory.iterdir()):
        if not _NAME.fullmatch(name):
            raise UsageError(f"{directory} is not empty", remedy="name a new directory")


@contextmanager
def filling(directory: Path) -> Iterator[Path]:
    """Return a private place whose ``tree`` becomes the content of a new or empty directory.

    When the block fails, nothing of it is seen; what a killed one left is removed by the next.
    """
    refuse_used(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{directory} cannot be made: {error.strerror}", remedy="name another directory"
        ) from error
    with trees.opened(directory.resolve()) as top:
        name = f".perago-checkout-{uuid.uuid4().hex}"
        try:
            with _begun(top, name, directory) as draft:
                yield directory / name
                with trees.entered(draft, _TREE) as tree:
                    _show(tree, top, directory)
        finally:
            with suppress(OSError):  # A twin may still be busy; then the next one removes it.
                trees.remove(top, name)


def tree_of(draft: Path) -> Path:
    """Name the directory to be filled."""
    return draft / _TREE


@contextmanager
def trying(draft: Path) -> Iterator[Path]:
    """Return a place of one's own, for one of several that may bring the same files."""
    place = draft / _TRIES / uuid.uuid4().hex
    place.mkdir()
    try:
        yield place
    finally:
        with suppress(OSError), trees.opened(place.parent) as above:
            trees.remove(above, place.name)


def keep(tries: int, name: str, tree: int, path: str) -> None:
    """Move a whole file to its path, unless a twin was quicker: its file is as good."""
    above, _, last = path.rpartition("/")
    with made_beneath(tree, above, 0o777) as directory, suppress(FileExistsError):
        _move_file(tries, name, directory, last)


def _move_file(source: int, name: str, target: int, path: str) -> None:
    """Give a file its name; ``FileExistsError`` where that is taken."""
    try:
        os.link(name, path, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.rename(name, path, src_dir_fd=source, dst_dir_fd=target)


def _show(tree: int, top: int, directory: Path) -> None:
    """Move what was filled to where it is seen."""
    with os.scandir(tree) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        try:
            if entry.is_dir(follow_symlinks=False):
                # Takes the place of an empty directory at most.
                os.rename(entry.name, entry.name, src_dir_fd=tree, dst_dir_fd=top)
            else:
                _move_file(tree, entry.name, top, entry.name)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
            raise UsageError(
                f"another process put {entry.name!a} into {directory} while it was filled",
                remedy="name a new directory",
            ) from None


@contextmanager
def _begun(top: int, name: str, directory: Path) -> Iterator[int]:
    """Make the private place and hold its lock; what killed ones left goes."""
    try:
        for left in filter(_NAME.fullmatch, os.listdir(top)):
            with trees.entered(top, left) as old:
                _lock(old)
                trees.remove(top, left)
        os.mkdir(name, 0o700, dir_fd=top)
        draft = os.open(name, _DIRECTORY, dir_fd=top)
    except OSError as error:
        raise _in_the_way(directory, error) from error
    try:
        try:
            _lock(draft)
            for part in (_TREE, _TRIES):
                os.mkdir(part, dir_fd=draft)
        except OSError as error:
            raise _in_the_way(directory, error) from error
        yield draft
    finally:
        os.close(draft)


def _in_the_way(directory: Path, error: OSError) -> UsageError:
    if isinstance(error, BlockingIOError | FileNotFoundError):
        return UsageError(f"another checkout is filling {directory}", remedy="name a new directory")
    return UsageError(
        f"{directory} cannot be filled: {error.strerror}", remedy="name a new directory"
    )


def _lock(directory: int) -> None:
    """Hold a directory while we live; where that cannot be done, it is nobody's."""
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return
