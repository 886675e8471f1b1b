"""What watches over an author's code in an executor process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from perago.process import process_state
from perago.process.forks import ForkWatch


def around_bodies() -> Callable[[], AbstractContextManager[None]]:
    """Watch the bodies of this process: no copy of it comes back, what is its own is given back.

    A thread among others has no process to itself, so there it does nothing.
    """
    forks, mine = ForkWatch(), process_state.own()

    @contextmanager
    def around() -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        with forks.alone(), mine.kept():
            yield

    return around
