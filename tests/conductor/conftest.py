"""A real Conductor, straight and through a network that goes wrong."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from perago.brokers.conductor import client as client_module
from perago.brokers.conductor.client import ConductorClient
from perago.dev import ConductorEndpoint
from perago.settings import ConductorSettings
from perago.transfer import json_http
from tests.conductor.lab import Lab, new_lab
from tests.faults.impatience import SkippingClock, give_up_on_silence
from tests.faults.proxy import Proxy
from tests.patience import LIMIT


@pytest.fixture
def truth(conductor_server: ConductorEndpoint) -> Iterator[ConductorClient]:
    """Give the server itself: what it says here came through nothing that is faulted."""
    client = ConductorClient(ConductorSettings(conductor_server.url), call_seconds=LIMIT)
    yield client
    client.close()


@pytest.fixture
def lab(truth: ConductorClient) -> Lab:
    return new_lab(truth)


@pytest.fixture
def proxy(conductor_server: ConductorEndpoint) -> Iterator[Proxy]:
    with Proxy(conductor_server.url.removesuffix("/api")) as proxy:
        yield proxy
    assert proxy.problems == []


@pytest.fixture
def clock(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> SkippingClock:
    """Give a clock that is ahead by all that need not be waited for."""
    return give_up_on_silence(proxy, monkeypatch, client_module, json_http)


@pytest.fixture
def faulted(proxy: Proxy, clock: SkippingClock) -> Iterator[ConductorClient]:
    """Give a client behind the proxy that waits for nothing that does not come."""
    client = ConductorClient(ConductorSettings(proxy.url))
    yield client
    client.close()
