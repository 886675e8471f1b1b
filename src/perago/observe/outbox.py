"""A thread that writes what others must not wait for; what does not fit is dropped and counted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
_IDLE_SECONDS = 60.0


class Outbox(Generic[T]):
    """Items in, batches out, in order. ``write`` is called by one thread and may take its time."""

    def __init__(
        self,
        name: str,
        write: Callable[[Sequence[T]], None],
        *,
        most: int,
        every_seconds: float,
    ) -> None:
        self._write = write
        self._most = most
        self._every = every_seconds
        self._items: list[T] = []
        self._changed = threading.Condition()
        self._urgent = False
        self._closed = False
        self.dropped = 0
        self._thread = threading.Thread(target=self._live, name=f"perago-{name}", daemon=True)
        self._thread.start()

    def put(self, item: T) -> bool:
        """Leave one item; False when there is no room, which never waits."""
        with self._changed:
            if self._closed or len(self._items) >= self._most:
                self.dropped += 1
                return False
            self._items.append(item)
            if len(self._items) == 1:
                self._changed.notify()
            return True

    def hurry(self) -> None:
        """Write what is there now, not at the end of the interval."""
        with self._changed:
            self._urgent = True
            self._changed.notify()

    def close(self, timeout_seconds: float) -> bool:
        """Write the rest and stop; False when that took longer than there was time."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def _live(self) -> None:
        while True:
            with self._changed:
                while not self._items and not self._closed:
                    self._changed.wait(_IDLE_SECONDS)
                self._gather()
                items, self._items = self._items, []
                self._urgent = False
                closed = self._closed
            try:
                if items:
                    self._write(items)
            except Exception:  # noqa: BLE001 - losing lines is better than losing the writer
                self.dropped += len(items)
            if closed:
                return

    def _gather(self) -> None:
        """Wait for more, so that they go together."""
        until = time.monotonic() + self._every
        while not (self._urgent or self._closed or len(self._items) >= self._most):
            left = until - time.monotonic()
            if left <= 0:
                return
            self._changed.wait(left)
