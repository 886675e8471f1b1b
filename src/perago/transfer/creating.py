"""New files: one way to make them, which never follows a link and never takes another's place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def create(path: str | Path) -> int:
    """Open a file that was not there; directories above it are made."""
    try:
        return os.open(path, _CREATE, 0o666)
    except FileNotFoundError:
        above = os.path.dirname(path)  # noqa: PTH120 - a hot loop over plain strings
        os.makedirs(above, exist_ok=True)  # noqa: PTH103 - as above
        return os.open(path, _CREATE, 0o666)


def create_beneath(top: int, path: str, mode: int) -> int:
    """Open a file that was not there below an open directory; private ones above it are made."""
    above, _, name = path.rpartition("/")
    with made_beneath(top, above) as directory:
        return os.open(name, _CREATE, mode, dir_fd=directory)


@contextmanager
def made_beneath(top: int, path: str, mode: int = 0o700) -> Iterator[int]:
    """Open a directory below an open one, made with all on the way where it was not there."""
    here = os.dup(top)
    try:
        for name in filter(None, path.split("/")):
            with suppress(FileExistsError):
                os.mkdir(name, mode, dir_fd=here)
            deeper = os.open(name, _DIRECTORY, dir_fd=here)
            os.close(here)
            here = deeper
        yield here
    finally:
        os.close(here)
