"""Other users of this machine: a piece of a test that runs under another uid."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")
ALICE, MALLORY = 61001, 61002
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")


def as_user(uid: int, work: Callable[[], T]) -> T:
    """Run something as another user, in a child; returns what it returns, raises what it raises.

    What it needs is imported already: the other user may not be able to read this interpreter.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            said: tuple[bool, object] = (True, work())
        except BaseException as error:  # noqa: BLE001 - raised again by the parent
            said = (False, error)
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(pickle.dumps(said))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    well, result = pickle.loads(told)  # noqa: S301 - our own child's
    if not well:
        raise result
    return result  # type: ignore[no-any-return]


@contextmanager
def shared_directory(mode: int = 0o1777) -> Iterator[Path]:
    """Give a directory that every user can reach, like the system's one for temporary files."""
    path = Path(tempfile.mkdtemp(prefix="perago-shared-", dir="/var/tmp"))
    try:
        path.chmod(mode)
        yield path
    finally:
        shutil.rmtree(path)
