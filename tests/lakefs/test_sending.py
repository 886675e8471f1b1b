"""A receiver may be slow; only one that takes nothing at all is given up (section 13)."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
import urllib3

from perago.errors import PeragoError
from perago.settings import LakeFSSettings
from perago.stores.lakefs import sending
from perago.stores.lakefs.client import LakeFSClient
from perago.transfer import http_pool
from tests.patience import LIMIT

STORED = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
SIZE = 6 << 20


@contextmanager
def receiver(takes: Callable[[socket.socket], None]) -> Iterator[str]:
    """Listen with as little room for what is on its way as the system allows."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    listener.bind(("127.0.0.1", 0))
    listener.listen()

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    takes(connection)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()


def head(connection: socket.socket) -> None:
    """Read up to the end of the headers."""
    seen = b""
    while b"\r\n\r\n" not in seen:
        seen += connection.recv(1)


def pieces(count: int = SIZE) -> Iterator[bytes]:
    for _ in range(count >> 20):
        yield bytes(1 << 20)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every time limit but the one of a stall shorter than the pauses of the receiver."""
    limits = urllib3.Timeout(connect=0.3, read=30)
    monkeypatch.setattr("perago.stores.lakefs.client.STREAM", limits)
    monkeypatch.setattr(http_pool, "CONNECT_SECONDS", 0.3)


def client_of(address: str) -> LakeFSClient:
    return LakeFSClient(LakeFSSettings(address, "key", "secret"), 2)


def test_a_receiver_that_pauses_longer_than_connecting_may_take_gets_everything() -> None:
    got: list[int] = []
    pause = threading.Event()

    def takes(connection: socket.socket) -> None:
        for _ in range(2):  # The second one on the kept connection.
            head(connection)
            pause.wait(1)  # longer than connecting may take
            left = SIZE
            while left:
                left -= len(connection.recv(min(left, 1 << 16)))
            got.append(SIZE)
            connection.sendall(STORED)

    with receiver(takes) as address:
        client = client_of(address)
        for _ in range(2):
            client.send("write object", "/objects", {}, pieces(), SIZE)
        client.close()
    assert got == [SIZE, SIZE]


def test_one_big_piece_has_the_time_of_a_stall_for_each_of_its_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Slower as a whole than a stall may last, but never still for so long."""
    monkeypatch.setattr(sending, "STALL_SECONDS", 2.0)
    pause = threading.Event()

    def takes(connection: socket.socket) -> None:
        head(connection)
        left = SIZE
        while left:
            pause.wait(0.4)
            wanted = min(left, 1 << 20)
            left -= wanted
            while wanted:
                wanted -= len(connection.recv(wanted))
        connection.sendall(STORED)

    with receiver(takes) as address:
        client = client_of(address)
        client.send("write object", "/objects", {}, [bytes(SIZE)], SIZE)
        client.close()


def test_a_receiver_that_takes_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "STALL_SECONDS", 0.5)
    ended = threading.Event()

    def takes(connection: socket.socket) -> None:
        head(connection)
        ended.wait(LIMIT)

    with receiver(takes) as address:
        client = client_of(address)
        with pytest.raises(PeragoError, match="write object"):
            client.send("write object", "/objects", {}, pieces(), SIZE)
        ended.set()
        client.close()
