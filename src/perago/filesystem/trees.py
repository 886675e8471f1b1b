"""Directories by descriptor: an opened one stays what it is, whatever its name comes to mean (V6).

A body may put a link, a mount or another directory in the place of one of ours. Nothing here
follows a link below the directory it is given, and nothing leaves the mount which that is on.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

Identity = tuple[int, int]
"""Device and inode: which directory it is, whatever it is called."""
Place = tuple[int, bytes]
"""Device and mount."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DEEPEST = 24
"""How many directories are held open at once; what is deeper is lifted up first."""
LIFTED = ".perago-deep-"
_ESCAPED = re.compile(r"\\([0-7]{3})")


def identity(found: os.stat_result) -> Identity:
    """Tell which directory or file a stat is of."""
    return found.st_dev, found.st_ino


@contextmanager
def opened(path: Path | str, made: Identity | None = None) -> Iterator[int]:
    """Open a directory by its path, whose last part is no link; ``made``: it must be that one."""
    fd = os.open(path, _DIRECTORY)
    try:
        if made is not None and identity(os.fstat(fd)) != made:
            raise _not_the_one(os.fspath(path))
        yield fd
    finally:
        os.close(fd)


@contextmanager
def entered(
    directory: int, name: str, made: Identity | None = None, *, unlock: bool = False
) -> Iterator[int]:
    """Open a directory in an open one: no link, not on another mount, and the one we made.

    ``unlock`` lets us into one that we may not read: modes are not content.
    """
    enter = _open_to_empty if unlock else _enter
    fd = enter(directory, name, _place(directory), made)
    try:
        yield fd
    finally:
        os.close(fd)


def open_beneath(top: int, path: str, flags: int = _FILE) -> int:
    """Open what is at a path below a directory; a link anywhere on the way is an error."""
    *directories, name = path.split("/")
    here = top
    try:
        for directory in directories:
            deeper = os.open(directory, _DIRECTORY, dir_fd=here)
            if here != top:
                os.close(here)
            here = deeper
        return os.open(name, flags, dir_fd=here)
    finally:
        if here != top:
            os.close(here)


@contextmanager
def beneath(top: int, path: str) -> Iterator[int]:
    """Open a directory at a path below another, the empty path being that one; as :func:`walk`."""
    fd = open_beneath(top, path or ".", _DIRECTORY)
    try:
        _stay(fd, _place(top), path)
        yield fd
    finally:
        os.close(fd)


def names(directory: int) -> list[str]:
    """List an open directory, in order."""
    return sorted(name for name, _ in _entries(directory))


def walk(top: int) -> Iterator[tuple[str, os.stat_result]]:
    """Yield every path below that is no directory, in order within each directory.

    An ``OSError`` says in ``filename`` which directory could not be read; ``EXDEV``: it is on
    another mount.
    """
    place = _place(top)
    pending = [""]
    while pending:
        path = pending.pop()
        try:
            # Opened anew, the top too: some file systems list what was there at that moment.
            fd = open_beneath(top, path or ".", _DIRECTORY)
        except OSError as error:
            raise _named(error, path) from error
        try:
            _stay(fd, place, path)
            before = os.fstat(fd)
            with os.scandir(fd) as found:
                entries = sorted(found, key=lambda entry: entry.name)
            _refuse_changed(before, os.fstat(fd))
            for entry in entries:
                below = f"{path}/{entry.name}" if path else entry.name
                if entry.is_dir(follow_symlinks=False):
                    pending.append(below)
                else:
                    yield below, entry.stat(follow_symlinks=False)
        except OSError as error:
            raise _named(error, path) from error
        finally:
            os.close(fd)


def _refuse_changed(before: os.stat_result, after: os.stat_result) -> None:
    """Refuse a directory in which names come and go: its listing may lack some that stay."""
    if (before.st_mtime_ns, before.st_ctime_ns) != (after.st_mtime_ns, after.st_ctime_ns):
        raise OSError(errno.EAGAIN, "it changed while it was listed")


def missing_part(top: int, path: str) -> str:
    """Return how much of the path of a file leads to no such file; empty when it is there.

    A directory that stands where the file was is no such file, nor is a file where a directory was.
    """
    *directories, name = path.split("/")
    here, so_far = os.dup(top), ""
    try:
        for part in directories:
            so_far = f"{so_far}/{part}" if so_far else part
            if stat.S_ISREG(os.stat(part, dir_fd=here, follow_symlinks=False).st_mode):
                return so_far
            deeper = os.open(part, _DIRECTORY, dir_fd=here)
            os.close(here)
            here = deeper
        so_far = path
        found = os.stat(name, dir_fd=here, follow_symlinks=False)
        return path if stat.S_ISDIR(found.st_mode) else ""
    except FileNotFoundError:
        return so_far
    except OSError:  # A link on the way: there is something.
        return ""
    finally:
        os.close(here)


def mounts(top: int) -> list[str]:
    """Name what is mounted below an open directory, files too; none where the system has no /proc.

    By name, so only good for a message: what is safe is made so by descriptors.
    """
    try:
        prefix = os.readlink(f"/proc/self/fd/{top}") + "/"  # noqa: PTH115 - a descriptor's name
        lines = os.fsdecode(Path("/proc/self/mountinfo").read_bytes()).splitlines()
    except OSError:
        return []
    points = (_ESCAPED.sub(lambda code: chr(int(code[1], 8)), line.split(" ")[4]) for line in lines)
    return [point.removeprefix(prefix) for point in points if point.startswith(prefix)]


def never() -> bool:
    """Say that there is time enough."""
    return False


def remove(directory: int, name: str, out_of_time: Callable[[], bool] = never) -> None:
    """Remove what has a name in an open directory; what is already gone is fine.

    Whatever can be removed is, also when something else cannot; the first reason is raised, and
    ``TimeoutError`` when the time is up.
    """
    place = _place(directory)
    try:
        if not stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=directory)
            return
        fd = _open_to_empty(directory, name, place)
    except FileNotFoundError:
        return
    try:
        empty(fd, out_of_time)
    finally:
        os.close(fd)
    with suppress(FileNotFoundError):
        os.rmdir(name, dir_fd=directory)


def empty(
    directory: int, out_of_time: Callable[[], bool] = never, keep: Collection[str] = ()
) -> None:
    """Remove everything in an open directory but the names in ``keep``; as :func:`remove`."""
    _Emptying(directory, out_of_time).run(keep)


class _Emptying:
    """One removal: never more than a few directories are open, however deep the tree is."""

    def __init__(self, top: int, out_of_time: Callable[[], bool]) -> None:
        self._top = top
        self._place = _place(top)
        self._out_of_time = out_of_time
        self._lifted = False
        self._failure: OSError | None = None

    def run(self, keep: Collection[str]) -> None:
        self._lifted = True
        while self._lifted:
            self._lifted = False
            self._clear(self._top, "", 0, keep)
        if self._failure is not None:
            raise self._failure

    def _clear(self, directory: int, path: str, depth: int, keep: Collection[str] = ()) -> None:
        for name, is_directory in _entries(directory):
            if name in keep:
                continue
            if self._out_of_time():
                raise TimeoutError(errno.ETIMEDOUT, "time is up")
            below = f"{path}/{name}" if path else name
            try:
                if is_directory:
                    self._remove_directory(directory, name, below, depth)
                else:
                    os.unlink(name, dir_fd=directory)
            except FileNotFoundError:
                continue
            except TimeoutError:
                raise
            except OSError as error:
                self._failure = self._failure or _named(error, below)

    def _remove_directory(self, directory: int, name: str, path: str, depth: int) -> None:
        fd = _open_to_empty(directory, name, self._place)
        try:
            if depth >= _DEEPEST:
                lifted = f"{LIFTED}{uuid.uuid4().hex}"
                os.rename(name, lifted, src_dir_fd=directory, dst_dir_fd=self._top)
                self._lifted = True
                return
            self._clear(fd, path, depth + 1)
        finally:
            os.close(fd)
        os.rmdir(name, dir_fd=directory)


def _entries(directory: int) -> list[tuple[str, bool]]:
    """List an open directory, with whether each name is a directory.

    It is opened anew: btrfs lists what was there when a directory was opened, so that what has been
    lifted into it since would never be seen.
    """
    again = os.open(".", _DIRECTORY, dir_fd=directory)
    try:
        with os.scandir(again) as found:
            return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
    finally:
        os.close(again)


def _open_to_empty(directory: int, name: str, place: Place, made: Identity | None = None) -> int:
    """Open a directory to remove what is in it; its mode may have to be changed for that."""
    try:
        fd = _enter(directory, name, place, made)
    except PermissionError:
        _make_readable(directory, name, place, made)
        fd = _enter(directory, name, place, made)
    try:
        if os.fstat(fd).st_mode & stat.S_IRWXU != stat.S_IRWXU:
            os.fchmod(fd, stat.S_IRWXU)
    except OSError:
        os.close(fd)
        raise
    return fd


def _enter(directory: int, name: str, place: Place, made: Identity | None = None) -> int:
    fd = os.open(name, _DIRECTORY, dir_fd=directory)
    try:
        _stay(fd, place, name, made)
    except OSError:
        os.close(fd)
        raise
    return fd


def _make_readable(directory: int, name: str, place: Place, made: Identity | None) -> None:
    """Change the mode of a directory that cannot be opened, once it is known to be ours."""
    if not hasattr(os, "O_PATH"):
        os.chmod(name, stat.S_IRWXU, dir_fd=directory, follow_symlinks=False)
        return
    fd = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        _stay(fd, place, name, made)
        os.chmod(f"/proc/self/fd/{fd}", stat.S_IRWXU)  # noqa: PTH101 - a descriptor's own name
    finally:
        os.close(fd)


def _place(fd: int) -> Place:
    """Tell which device and mount an open directory is on; a bind mount has the same device."""
    mount = b""
    with suppress(OSError):  # No /proc here: then the device alone has to tell.
        info = os.open(f"/proc/self/fdinfo/{fd}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            mount = os.read(info, 4096).partition(b"mnt_id:")[2].partition(b"\n")[0].strip()
        finally:
            os.close(info)
    return os.fstat(fd).st_dev, mount


def _stay(fd: int, place: Place, name: str, made: Identity | None = None) -> None:
    if _place(fd) != place:
        raise OSError(errno.EXDEV, "it is on another file system or mount", name)
    if made is not None and identity(os.fstat(fd)) != made:
        raise _not_the_one(name)


def _not_the_one(name: str) -> OSError:
    return OSError(errno.ESTALE, "it is not the directory that was made there", name)


def _named(error: OSError, path: str) -> OSError:
    """Return where it happened: a call by descriptor knows only the last part of a path."""
    return OSError(error.errno, error.strerror or str(error), path)
