"""A lab whose store reaches a real lakeFS through the proxy, and the truth beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from perago.dev import LakeFSEndpoint
from perago.stores.lakefs import hard, store, transports
from perago.transfer import json_http
from tests.faults.impatience import SkippingClock, give_up_on_silence
from tests.faults.proxy import Proxy
from tests.lakefs.bench import Bench
from tests.lakefs_lab import ArrangedLakeFS, new_name


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
    worker = ArrangedLakeFS(lakefs_server, tmp_path / "worker", url=proxy.url)
    bench = Bench(worker, truth, proxy, new_name(), tmp_path)
    yield bench
    bench.close()


@pytest.fixture
def impatient(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> SkippingClock:
    """Have a worker that need not wait for what does not come; nothing else is changed."""
    clock = give_up_on_silence(bench.proxy, monkeypatch, json_http, hard, transports, store)
    bench.lab.clock = clock
    return clock
