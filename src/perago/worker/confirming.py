"""Reports that are read back when there is a moment (R2).

The engine is busiest while a queue is being emptied, and nothing waits to hear that it has taken
the result of an attempt that published nothing. So such questions wait until the worker has been
quiet for a moment, and never longer than a few seconds.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Final

from perago.ports import Clock
from perago.worker.background_pool import Action

QUIET_SECONDS: Final = 0.25
"""For so long there was nothing to do: this is more than the gap between two claims."""
LATEST_SECONDS: Final = 5.0
"""So long a question waits while there is always something to do."""
MOST: Final = 500
"""So many may wait; they keep their results in memory."""
_IDLE_SECONDS: Final = 60.0


class Confirmations:
    """One thread that asks one question at a time; an action handles its own errors."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._waiting: deque[tuple[float, Action]] = deque()
        self._quiet_since: float | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="perago-confirm", daemon=True)
        self._thread.start()

    @property
    def left(self) -> int:
        """Count the questions that wait for their moment."""
        return len(self._waiting)

    def add(self, action: Action) -> None:
        """Have a question asked when there is a moment."""
        with self._changed:
            self._waiting.append((self._clock.monotonic(), action))
            if len(self._waiting) in {1, MOST + 1}:
                self._changed.notify_all()

    def quiet(self, quiet: bool) -> None:  # noqa: FBT001 - what the worker is
        """Say whether the worker has nothing to do; may be said again and again."""
        if quiet == (self._quiet_since is not None):
            return
        with self._changed:
            self._quiet_since = self._clock.monotonic() if quiet else None
            self._changed.notify_all()

    def close(self, timeout_seconds: float) -> bool:
        """Ask everything now; False when it takes longer than that."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    # --- the thread ----------------------------------------------------------------------------

    def _run(self) -> None:
        while action := self._next():
            action()

    def _next(self) -> Action | None:
        with self._changed:
            while (seconds := self._patience()) > 0:
                self._changed.wait(seconds)
            return self._waiting.popleft()[1] if self._waiting else None

    def _patience(self) -> float:
        """Return how long the oldest question may still wait."""
        if self._closed:
            return 0.0
        if not self._waiting:
            return _IDLE_SECONDS
        if len(self._waiting) > MOST:
            return 0.0
        due = self._waiting[0][0] + LATEST_SECONDS
        if self._quiet_since is not None:
            due = min(due, self._quiet_since + QUIET_SECONDS)
        return due - self._clock.monotonic()
