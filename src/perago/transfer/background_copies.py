"""Copies of big files that nobody waits for: the worker goes on while the disk is busy."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

_MOST = 32  # Each holds a file open.


class BackgroundCopies:
    """One thread beside the work; ``wait`` comes back when all it was given is done."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._given: list[Callable[[], None]] = []
        self._running: list[Future[None]] = []
        self._pool: ThreadPoolExecutor | None = None
        self._owner = os.getpid()

    def give(self, work: Callable[[], None]) -> None:
        """Take something to do after ``go``; where too much waits already, do it at once."""
        with self._turn:
            self._forget_parent()
            if len(self._given) < _MOST:
                self._given.append(work)
                return
        work()

    def go(self) -> None:
        """Begin with what was given."""
        with self._turn:
            self._forget_parent()
            if self._given and self._pool is None:
                self._pool = ThreadPoolExecutor(1, thread_name_prefix="perago-cache")
            self._running = [one for one in self._running if not one.done()]
            if self._pool is not None:
                self._running += [self._pool.submit(work) for work in self._given]
            self._given = []

    def wait(self) -> None:
        """Wait for what was given until now."""
        self.go()
        with self._turn:
            running = list(self._running)
        for one in running:
            one.result()

    def close(self) -> None:
        """Finish and end the thread."""
        self.wait()
        with self._turn:
            if self._pool is not None:
                self._pool.shutdown()
            self._pool = None

    def _forget_parent(self) -> None:
        """Begin anew in the child of a fork: the thread is not in it."""
        if self._owner != os.getpid():
            self._owner, self._given, self._running, self._pool = os.getpid(), [], [], None
