"""A few threads that do small actions for the supervisor, so that it never waits for a server."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

Action = Callable[[], None]


class BackgroundPool:
    """Does actions in order, several at a time; an action handles its own errors."""

    def __init__(self, name: str, size: int, on_error: Callable[[Exception], None]) -> None:
        self._actions: queue.SimpleQueue[Action | None] = queue.SimpleQueue()
        self._on_error = on_error
        self._left = 0
        self._changed = threading.Condition()
        self._threads = [
            threading.Thread(target=self._work, name=f"perago-{name}-{number}", daemon=True)
            for number in range(size)
        ]
        for thread in self._threads:
            thread.start()

    def do(self, action: Action) -> None:
        """Have an action done soon."""
        with self._changed:
            self._left += 1
        self._actions.put(action)

    @property
    def left(self) -> int:
        """Count actions that are not done."""
        return self._left

    def close(self, timeout_seconds: float) -> bool:
        """Finish what was begun and join; False when something is still under way."""
        deadline = time.monotonic() + timeout_seconds
        with self._changed:
            done = self._changed.wait_for(lambda: self._left == 0, timeout_seconds)
        for _ in self._threads:
            self._actions.put(None)
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return done

    def _work(self) -> None:
        while (action := self._actions.get()) is not None:
            try:
                action()
            except Exception as error:  # noqa: BLE001 - one action must not end the pool
                self._on_error(error)
            with self._changed:
                self._left -= 1
                self._changed.notify_all()
