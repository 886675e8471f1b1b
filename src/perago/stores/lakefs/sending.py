"""Connections that send for as long as the other side takes something.

The library underneath gives a request that is being sent the time limit of connecting, and gives
it once for each piece, however long that is. A receiver may be slow: only one that takes nothing
at all for a while is given up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

from perago.transfer.http_pool import CONNECT_SECONDS

STALL_SECONDS: Final = 60.0
"""How long a receiver may take nothing."""
ANSWER_SECONDS: Final = 30.0
"""How long it may take to answer when it has everything, and between two pieces of an answer."""
STREAM: Final = urllib3.Timeout(connect=CONNECT_SECONDS, read=ANSWER_SECONDS)
_PIECE: Final = 1 << 16


class _Patient:
    """Sends in small pieces, each with the whole time of a stall."""

    sock: Any
    auto_open: int

    def connect(self) -> None: ...

    def send(self, data: Any) -> None:
        """Send all of it; ``TimeoutError`` when nothing was taken for too long."""
        if not isinstance(data, bytes | bytearray | memoryview):
            super().send(data)  # type: ignore[misc]
            return
        if self.sock is None:
            self.connect()
        self.sock.settimeout(STALL_SECONDS)
        left = memoryview(data)
        while left:
            left = left[self.sock.send(left[:_PIECE]) :]


class StreamingConnection(_Patient, HTTPConnection):
    """Without TLS."""

    connect = HTTPConnection.connect


class StreamingSecureConnection(_Patient, HTTPSConnection):
    """With TLS."""

    connect = HTTPSConnection.connect


class StreamingPool(urllib3.HTTPConnectionPool):
    """A pool of the first kind."""

    ConnectionCls = StreamingConnection


class StreamingSecurePool(urllib3.HTTPSConnectionPool):
    """A pool of the second kind."""

    ConnectionCls = StreamingSecureConnection


POOLS: Final[dict[str, type[urllib3.HTTPConnectionPool]]] = {
    "http": StreamingPool,
    "https": StreamingSecurePool,
}


def pool(address: str, kept: int, headers: Mapping[str, str]) -> urllib3.HTTPConnectionPool:
    """Make the pool of one server; ``ValueError`` for what is not its address."""
    parts = urllib3.util.parse_url(address)
    if not parts.host:
        raise ValueError("no host")
    kind = POOLS[parts.scheme or "http"]
    return kind(parts.host, port=parts.port, maxsize=kept, retries=False, headers=headers)


def manager(kept: int, **more: Any) -> urllib3.PoolManager:
    """Make pools for any address; nothing is ever repeated by itself."""
    made = urllib3.PoolManager(maxsize=kept, retries=False, timeout=STREAM, **more)
    made.pool_classes_by_scheme = dict(POOLS)
    return made
