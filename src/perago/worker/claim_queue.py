"""Where the poller leaves claims and the supervisor's one thread takes them.

The poller fetches no more than there are executors for. While attempts are short, it fetches a
few ahead, several at a time: a claim then waits here for a moment, never longer than the
supervisor allows, and an executor never waits for a poll.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

from perago.ports import Clock
from perago.protocol.values import Claim


class ClaimQueue:
    """Claims that wait, and how many more could be used."""

    def __init__(self, wake: Callable[[], None], clock: Clock) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._claims: deque[tuple[float, Claim]] = deque()
        self._free = 0
        self._ahead = 0
        self._closed = False
        self._wake = wake

    def demand(self, timeout_seconds: float) -> int:
        """Wait until claims could be used, and say how many; 0 when none came to be."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._wants(), timeout_seconds)
            return self._lacking() if self._wants() and not self._closed else 0

    def pause(self, timeout_seconds: float) -> None:
        """Wait, but not beyond the closing."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed, timeout_seconds)

    def offer(self, claims: Sequence[Claim]) -> bool:
        """Leave claims; False when they will not be taken any more."""
        with self._changed:
            if self._closed:
                return False
            now = self._clock.monotonic()
            self._claims.extend((now, claim) for claim in claims)
        self._wake()
        return True

    def take(self, idle: int, in_background: int, ahead: int = 0) -> list[Claim]:
        """Take a claim for each idle executor; say how many are idle soon, and wanted ahead."""
        with self._changed:
            taken = [self._claims.popleft()[1] for _ in range(min(idle, len(self._claims)))]
            self._free, self._ahead = idle - len(taken) + in_background, ahead
            if self._wants():
                self._changed.notify_all()
            return taken

    def rest(self) -> None:
        """Ask for nothing more until the next ``take``."""
        with self._changed:
            self._free = self._ahead = 0

    def overdue(self, seconds: float) -> list[Claim]:
        """Take out the claims that have waited longer than this."""
        with self._changed:
            until = self._clock.monotonic() - seconds
            late = [claim for at, claim in self._claims if at < until]
            self._claims = deque(item for item in self._claims if item[0] >= until)
            return late

    def drop(self, execution_id: str) -> bool:
        """Forget a claim that was lost while it lay here; False when it does not."""
        with self._changed:
            before = len(self._claims)
            kept = (item for item in self._claims if item[1].execution_id != execution_id)
            self._claims = deque(kept)
            return len(self._claims) < before

    @property
    def closed(self) -> bool:
        """Return whether it is over."""
        return self._closed

    def close(self) -> list[Claim]:
        """Take no more, and return what was not taken."""
        with self._changed:
            self._closed = True
            left = [claim for _, claim in self._claims]
            self._claims.clear()
            self._changed.notify_all()
            return left

    def _lacking(self) -> int:
        return self._free + self._ahead - len(self._claims)

    def _wants(self) -> bool:
        """Poll when an executor would wait otherwise, or when half of what lies ahead is gone."""
        return self._free > len(self._claims) or 0 < (self._ahead + 1) // 2 <= self._lacking()
