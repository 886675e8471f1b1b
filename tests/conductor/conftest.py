"""A real Conductor, straight and through a network that goes wrong."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from perago.brokers.conductor import client as client_module
from perago.brokers.conductor.client import ConductorClient
from perago.dev import ConductorEndpoint
from perago.settings import ConductorSettings
from tests.conductor.lab import Lab, new_lab
from tests.faults.proxy import Proxy

CALL_SECONDS = 6.0


@pytest.fixture
def truth(conductor_server: ConductorEndpoint) -> Iterator[ConductorClient]:
    """Give the server itself: what it says here came through nothing that is faulted."""
    client = ConductorClient(ConductorSettings(conductor_server.url))
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
def faulted(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[ConductorClient]:
    """Give a client behind the proxy that does not wait long; nothing else is changed."""
    monkeypatch.setattr(client_module, "_PAUSES", (0.01, 0.02, 0.03))
    client = ConductorClient(ConductorSettings(proxy.url), call_seconds=CALL_SECONDS)
    yield client
    client.close()
