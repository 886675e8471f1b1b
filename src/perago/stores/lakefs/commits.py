"""Commits by their id: they never change, so each is asked for once and the last are kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress

from perago.errors import PeragoError
from perago.prefetch import in_background
from perago.protocol.values import Commit

KEPT = 4096
"""Of a worker that runs for months only these stay in memory."""

Key = tuple[str, str]
Ask = Callable[[], Commit]


class Commits:
    """Remembers, and never asks twice at the same time; threads may share it."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Key, Commit] = OrderedDict()
        self._coming: dict[Key, Future[Commit | None]] = {}
        self._lock = threading.Lock()

    def find(self, repository: str, ref: str, ask: Ask) -> Commit:
        """Return what is known, what is being asked for just now, or the answer."""
        key = repository, ref
        with self._lock:
            if known := self._kept.get(key):
                self._kept.move_to_end(key)
                return known
            others = self._coming.get(key)
            mine: Future[Commit | None] = self._coming.setdefault(key, Future())
        if others is not None and (found := others.result()):
            return found
        answer = None
        try:
            answer = ask()
            self.keep(repository, answer)
        finally:
            if others is None:
                del self._coming[key]
                mine.set_result(answer)
        return answer

    def prefetch(self, repository: str, ref: str, ask: Ask) -> None:
        """Ask for one that will be wanted; whoever wants it asks again if this fails."""

        def look() -> None:
            with suppress(PeragoError):
                self.find(repository, ref, ask)

        in_background(look)

    def keep(self, repository: str, commit: Commit) -> None:
        """Remember one."""
        with self._lock:
            self._kept[repository, commit.id] = commit
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
