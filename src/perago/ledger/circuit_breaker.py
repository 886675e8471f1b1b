"""A database that did not answer is left alone for a while: it must not slow every attempt."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final

from perago.errors import LedgerUnavailableError
from perago.ledger.sql import Database, Row

REST_SECONDS: Final = 30.0


class CircuitBreaker:
    """Passes statements on, except for a while after one that failed."""

    def __init__(
        self, inner: Database, monotonic: Callable[[], float], rest_seconds: float = REST_SECONDS
    ) -> None:
        self._inner = inner
        self._monotonic = monotonic
        self._rest_seconds = rest_seconds
        self._lock = threading.Lock()
        self._until = float("-inf")
        self._last: LedgerUnavailableError | None = None

    def run(self, statement: str, values: Sequence[object]) -> list[Row]:
        """Carry out one statement, or refuse at once."""
        with self._lock:
            if self._last is not None and self._monotonic() < self._until:
                raise LedgerUnavailableError(self._last.message, remedy=self._last.remedy)
        try:
            rows = self._inner.run(statement, values)
        except LedgerUnavailableError as error:
            with self._lock:
                self._last, self._until = error, self._monotonic() + self._rest_seconds
            raise
        return rows

    def close(self) -> None:
        """Close what is open."""
        self._inner.close()
