"""The working directory of the process: an author's code may change it, and is brought back.

Threads share it: one that finds it changed puts it back for all of them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_lock = threading.Lock()
_inside: list[int | None] = []
"""The directory that the first of those who are inside came from, once for each of them."""


@contextmanager
def in_place(moved: Callable[[], None]) -> Iterator[None]:
    """Run an author's code; when it has changed the working directory, say so and go back."""
    with _lock:
        _inside.append(_inside[0] if _inside else _here())
    try:
        yield
    finally:
        with _lock:
            home = _inside.pop()
            away = home is not None and not _is(home)
            if home is not None:
                if away:
                    with suppress(OSError):
                        os.fchdir(home)
                if not _inside:
                    os.close(home)
        if away:
            moved()


def _here() -> int | None:
    """Hold the working directory; None when there is none any more."""
    with suppress(OSError):
        return os.open(".", getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC)
    return None


def _is(home: int) -> bool:
    try:
        return os.path.samestat(os.stat("."), os.fstat(home))  # noqa: PTH116 - wherever that is
    except OSError:
        return False
