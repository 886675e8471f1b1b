"""One request, one deadline, one answer, and no request that the caller did not ask for (P6)."""

from __future__ import annotations

import gc
import select
import socket
import struct
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from perago.transfer.http_pool import HttpConnectionPool, UnansweredError
from tests.patience import LIMIT

Deed = Callable[[socket.socket, bytes], None]
WHOLE = b"HTTP/1.1 200 OK\r\nX-Thing: yes\r\nContent-Length: 5\r\n\r\nhello"


class Listener:
    """A server that does what it is told for each request, whatever the connection."""

    def __init__(self, deeds: list[Deed]) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.line = HttpConnectionPool(self.address + "/below/", 4, {"User-Agent": "perago"})
        self._deeds = deeds
        self.heard: list[bytes] = []
        self.connections = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self.line.close()
        self._socket.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self.connections += 1
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while request := connection.recv(1 << 16):
                self.heard.append(request)
                self._deeds.pop(0)(connection, request)


@contextmanager
def listening(*deeds: Deed) -> Iterator[Listener]:
    listener = Listener(list(deeds))
    try:
        yield listener
    finally:
        listener.close()


def says(answer: bytes) -> Deed:
    return lambda connection, _: connection.sendall(answer)


def says_and_closes(answer: bytes) -> Deed:
    def deed(connection: socket.socket, _: bytes) -> None:
        connection.sendall(answer)
        connection.shutdown(socket.SHUT_RDWR)

    return deed


def resets(connection: socket.socket, _: bytes) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def drips(connection: socket.socket, _: bytes) -> None:
    for byte in WHOLE:
        connection.sendall(bytes([byte]))
        time.sleep(0.05)  # the fault itself


def hangs(connection: socket.socket, _: bytes) -> None:
    connection.recv(1)  # Until the other side has had enough.


def test_a_question_and_its_answer() -> None:
    with listening(says(WHOLE)) as listener:
        answer = listener.line.ask("POST", "/x?y=1", LIMIT, b"{}", {"Content-Type": "text/plain"})
    assert (answer.status, answer.body, answer.headers["x-thing"]) == (200, b"hello", "yes")
    head, _, body = listener.heard[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /below/x?y=1 HTTP/1.1\r\nHost: 127.0.0.1:")
    assert {b"User-Agent: perago", b"Content-Type: text/plain", b"Content-Length: 2"} <= set(
        head.split(b"\r\n")
    )
    assert body == b"{}"


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            200,
            b"abc",
        ),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
        (b"HTTP/1.1 412 Precondition Failed\r\nContent-Length: 2\r\n\r\n{}", 412, b"{}"),
    ],
    ids=["chunked", "empty", "refusal"],
)
def test_answers_of_every_shape(answer: bytes, status: int, body: bytes) -> None:
    with listening(says(answer)) as listener:
        found = listener.line.ask("GET", "/", LIMIT)
    assert (found.status, found.body) == (status, body)


def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    with listening(says_and_closes(b"HTTP/1.1 200 OK\r\n\r\nall of it"), says(WHOLE)) as listener:
        assert listener.line.ask("GET", "/", LIMIT).body == b"all of it"
        assert listener.line.ask("GET", "/", LIMIT).body == b"hello"
    assert listener.connections == 2


def test_a_connection_is_kept_unless_the_server_says_otherwise() -> None:
    close = WHOLE.replace(b"X-Thing: yes", b"Connection: close")
    with listening(says(WHOLE), says(close), says(WHOLE)) as listener:
        for _ in range(3):
            listener.line.ask("GET", "/", LIMIT)
    assert listener.connections == 2


def test_a_kept_connection_that_was_closed_is_replaced_before_anything_is_sent() -> None:
    with listening(says_and_closes(WHOLE), says(WHOLE)) as listener:
        listener.line.ask("GET", "/", LIMIT)
        (kept,) = vars(listener.line)["_idle"]
        assert select.select([kept], [], [], LIMIT)[0], "the news that it was closed"
        assert listener.line.ask("POST", "/merge", LIMIT).status == 200
    assert len(listener.heard) == 2


def test_p6_a_request_on_a_kept_connection_that_breaks_is_not_sent_again() -> None:
    with listening(says(WHOLE), resets, says(WHOLE)) as listener:
        listener.line.ask("GET", "/", LIMIT)
        with pytest.raises(UnansweredError, match="reset"):
            listener.line.ask("POST", "/merge", LIMIT, b"{}")
    assert len(listener.heard) == 2


@pytest.mark.parametrize(
    ("deed", "seconds", "words"),
    [
        (resets, LIMIT, "connection reset by peer"),
        (says_and_closes(WHOLE[:-2]), LIMIT, "the connection broke off"),
        (says_and_closes(WHOLE[:20]), LIMIT, "the connection broke off"),
        (says(b"220 mail.example.org ESMTP\r\n"), LIMIT, "what came is not HTTP"),
        (hangs, 0.3, "nothing came within 0.3 s"),
        (drips, 0.3, "nothing came within 0.3 s"),
    ],
    ids=["reset", "body cut", "head cut", "not http", "hangs", "drips"],
)
def test_what_is_no_whole_answer_is_none(deed: Deed, seconds: float, words: str) -> None:
    with listening(deed) as listener, pytest.raises(UnansweredError, match=words):
        listener.line.ask("GET", "/", seconds)


def test_a_server_that_is_not_there() -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))  # A port that nobody else gets, and nobody listens on.
        line = HttpConnectionPool(f"http://127.0.0.1:{deaf.getsockname()[1]}", 4, {})
        with pytest.raises(UnansweredError, match="connection refused"):
            line.ask("GET", "/", LIMIT)


def test_a_line_that_nobody_closed_takes_its_connections_with_it() -> None:
    with listening(says(WHOLE)) as listener:
        line = HttpConnectionPool(listener.address, 4, {})
        line.ask("GET", "/", LIMIT)
        with warnings.catch_warnings():
            warnings.simplefilter("error", ResourceWarning)
            del line
            gc.collect()


@pytest.mark.parametrize("address", ["lakefs:8000", "ftp://host", "http://", "http://[::1"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the edges have their own words for it
        HttpConnectionPool(address, 4, {})


def test_a_header_cannot_smuggle_another() -> None:
    with listening(says(WHOLE)) as listener, pytest.raises(ValueError, match="more than one line"):
        listener.line.ask("GET", "/", LIMIT, headers={"X-Token": "a\r\nX-Other: b"})


def test_threads_share_a_line() -> None:
    with listening(*[says(WHOLE)] * 80) as listener:
        bodies: list[bytes] = []

        def ask() -> None:
            bodies.extend(listener.line.ask("GET", "/", LIMIT).body for _ in range(10))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert bodies == [b"hello"] * 80
        assert listener.connections <= 80
