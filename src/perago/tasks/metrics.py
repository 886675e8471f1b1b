"""What a task measures about itself; the runtime hands the recorder in."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class MetricRecorder(Protocol):
    """Record numbers from inside a task body."""

    def histogram(
        self, name: str, value: float, *, labels: Mapping[str, str] | None = None
    ) -> None:
        """Add one sample of a distribution."""

    def gauge(self, name: str, value: float, *, labels: Mapping[str, str] | None = None) -> None:
        """Set a current value."""

    def timer(
        self, name: str, *, labels: Mapping[str, str] | None = None
    ) -> AbstractContextManager[None]:
        """Measure the seconds a ``with`` block takes."""


class Sink(Protocol):
    """Where recorded numbers go."""

    def __call__(self, kind: str, name: str, value: float, labels: Mapping[str, str]) -> None:
        """Take one sample."""


class SinkRecorder:
    """A recorder that passes every sample to one function."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def histogram(
        self, name: str, value: float, *, labels: Mapping[str, str] | None = None
    ) -> None:
        """Add one sample of a distribution."""
        self._sink("histogram", name, float(value), labels or {})

    def gauge(self, name: str, value: float, *, labels: Mapping[str, str] | None = None) -> None:
        """Set a current value."""
        self._sink("gauge", name, float(value), labels or {})

    @contextmanager
    def timer(self, name: str, *, labels: Mapping[str, str] | None = None) -> Iterator[None]:
        """Measure the seconds a ``with`` block takes, also when it raises."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self._sink("histogram", name, time.perf_counter() - started, labels or {})
