"""The same work on many items: bounded threads, the first failure stops the rest."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from perago.ports import Advance

T = TypeVar("T")
R = TypeVar("R")

_BYTES_FOR_A_THREAD = 16 << 20
_LOOK_SECONDS = 1.0


class _Stopped(Exception):  # noqa: N818 -- not an error: another item failed
    """Ends an item in the middle because something else failed."""


class MemoryAllowance:
    """So many bytes in memory at a time, over all threads; one item may always go ahead."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._used = 0
        self._changed = threading.Condition()

    @contextmanager
    def of(self, size: int) -> Iterator[None]:
        """Wait until there is room for it."""
        with self._changed:
            self._changed.wait_for(lambda: not self._used or self._used + size <= self._most)
            self._used += size
        try:
            yield
        finally:
            with self._changed:
                self._used -= size
                self._changed.notify_all()


class ConcurrencyLimit:
    """How many at a time a server takes: a little more while all goes well, half when it does not.

    One for a server, over all threads and calls.
    """

    def __init__(self, most: int, first: int) -> None:
        self._most = most
        self._limit = min(first, most)
        self._inside = 0
        self._well = 0
        self._troubled = False
        self._changed = threading.Condition()

    @property
    def limit(self) -> int:
        """Return how many may be under way now."""
        return self._limit

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for one's turn; what ends without an error counts as gone well."""
        with self._changed:
            while self._inside >= self._limit:
                self._changed.wait(_LOOK_SECONDS)
            self._inside += 1
        try:
            yield
            self._went_well()
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify()

    def back_off(self) -> None:
        """Halve: the server was too busy, or did not answer in time."""
        with self._changed:
            if not self._troubled:  # Many failures at once count as one.
                self._limit = max(1, self._limit // 2)
            self._troubled = True
            self._well = 0

    def _went_well(self) -> None:
        with self._changed:
            self._well += 1
            self._troubled = False
            if self._well >= self._limit < self._most:
                self._limit += 1
                self._well = 0
                self._changed.notify()


def local_threads(items: int, size: int) -> int:
    """Choose how many threads so many items of so many bytes deserve on this machine's disk.

    Small files are all interpreter and no disk: more threads would only wait for each other.
    """
    return max(1, min(8, (os.cpu_count() or 1) + 4, items, 1 + size // _BYTES_FOR_A_THREAD))


def each(
    items: Sequence[T], work: Callable[[T, Advance], R], advance: Advance, *, threads: int
) -> list[R]:
    """Return the result of every item in order, or raise the first failure.

    ``advance`` is called by one thread at a time.
    """
    turn = threading.Lock()
    feed = iter(enumerate(items))
    results: dict[int, R] = {}
    failures: list[BaseException] = []

    def report(count: int) -> None:
        with turn:
            if failures:
                raise _Stopped
            try:
                advance(count)
            except BaseException as failure:  # the watcher's own, whatever its type
                failures.append(failure)
                raise _Stopped from failure

    def run() -> None:
        while not failures:
            with turn:
                position, item = next(feed, (-1, None))
            if item is None:
                return
            try:
                results[position] = work(item, report)
            except BaseException as failure:  # noqa: BLE001 -- raised again by the caller
                failures.append(failure)

    _run_all(run, max(1, min(threads, len(items))), failures)
    if failures:
        raise failures[0]
    return [results[position] for position in range(len(items))]


def _run_all(run: Callable[[], None], count: int, failures: list[BaseException]) -> None:
    """Run on ``count`` threads and wait for all, also when the wait itself is interrupted."""
    if count == 1:
        run()
        return
    with ThreadPoolExecutor(count, thread_name_prefix="perago-transfer") as pool:
        try:
            for running in [pool.submit(run) for _ in range(count)]:
                running.result()
        except BaseException as interruption:
            failures.append(interruption)
            raise
