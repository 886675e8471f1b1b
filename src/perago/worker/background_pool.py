"""A few threads that do small errands for the supervisor, so that it never waits for a server."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

Errand = Callable[[], None]


class BackgroundPool:
    """Does errands in order, several at a time; an errand handles its own errors."""

    def __init__(self, name: str, size: int, on_error: Callable[[Exception], None]) -> None:
        self._errands: queue.SimpleQueue[Errand | None] = queue.SimpleQueue()
        self._on_error = on_error
        self._left = 0
        self._changed = threading.Condition()
        self._threads = [
            threading.Thread(target=self._work, name=f"perago-{name}-{number}", daemon=True)
            for number in range(size)
        ]
        for thread in self._threads:
            thread.start()

    def do(self, errand: Errand) -> None:
        """Have an errand done soon."""
        with self._changed:
            self._left += 1
        self._errands.put(errand)

    @property
    def left(self) -> int:
        """Count errands that are not done."""
        return self._left

    def close(self, timeout_seconds: float) -> bool:
        """Finish what was begun and join; False when something is still under way."""
        deadline = time.monotonic() + timeout_seconds
        with self._changed:
            done = self._changed.wait_for(lambda: self._left == 0, timeout_seconds)
        for _ in self._threads:
            self._errands.put(None)
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return done

    def _work(self) -> None:
        while (errand := self._errands.get()) is not None:
            try:
                errand()
            except Exception as error:  # noqa: BLE001 - one errand must not end the crew
                self._on_error(error)
            with self._changed:
                self._left -= 1
                self._changed.notify_all()
