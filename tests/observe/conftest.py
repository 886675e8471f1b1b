"""A collector, and an environment without the OpenTelemetry settings of whoever runs the tests."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

import pytest

from tests.observe.collector import Collector


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    # What a process says once, each test may hear.
    monkeypatch.setattr(logging.getLogger("opentelemetry"), "handlers", [])


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as found:
        yield found
