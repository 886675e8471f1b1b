"""A lab whose store reaches a real lakeFS through the proxy, and the truth beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from perago.dev import LakeFSEndpoint
from perago.stores.lakefs import client, gateway, roads
from perago.transfer.line import Answer, Line
from tests.faults.proxy import Proxy
from tests.lakefs.bench import Bench
from tests.lakefs_lab import ArrangedLakeFS, new_name

TRY_SECONDS = 1.0


@pytest.fixture
def proxy(lakefs_server: LakeFSEndpoint) -> Iterator[Proxy]:
    with Proxy(lakefs_server.endpoint) as proxy:
        yield proxy
    assert proxy.problems == []


@pytest.fixture
def truth(lakefs_server: LakeFSEndpoint, tmp_path: Path) -> Iterator[ArrangedLakeFS]:
    """Give the server itself: what it says here came through nothing that is faulted."""
    truth = ArrangedLakeFS(lakefs_server, tmp_path / "truth")
    yield truth
    truth.close()


@pytest.fixture
def bench(
    lakefs_server: LakeFSEndpoint, proxy: Proxy, truth: ArrangedLakeFS, tmp_path: Path
) -> Iterator[Bench]:
    store = ArrangedLakeFS(lakefs_server, tmp_path / "worker", url=proxy.url)
    bench = Bench(store, truth, proxy, new_name(), tmp_path)
    yield bench
    bench.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten what is waited for, so that a hang ends soon; nothing else is changed."""

    ask = Line.ask

    def soon(self: Line, method: str, target: str, seconds: float, *rest: Any) -> Answer:
        return ask(self, method, target, min(seconds, TRY_SECONDS), *rest)

    monkeypatch.setattr(Line, "ask", soon)
    monkeypatch.setattr(client, "STREAM", urllib3.Timeout(connect=1, read=TRY_SECONDS))
    monkeypatch.setattr(client, "_PAUSES", (0.01, 0.02, 0.03))
    monkeypatch.setattr(roads, "_PAUSES", (0.01, 0.02, 0.03))
    monkeypatch.setattr(gateway, "SECONDS", 2)
