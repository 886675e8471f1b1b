"""Questions to one server: kept connections, one deadline each, never a second try by itself.

A general client costs a third of a millisecond of CPU for each question, mostly in reading
headers, and an attempt asks a dozen. What comes is read by the parser of a well-known server;
around it there is only what the edges need, and nothing that could send a publish call twice.
"""

from __future__ import annotations

import select
import socket
import ssl
import time
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httptools

CONNECT_SECONDS = 5.0
_READ_BYTES = 1 << 16
_PORTS = {"http": 80, "https": 443}


class UnansweredError(Exception):
    """No whole answer came; the server may have done what it was asked or not."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What a server said, whole."""

    status: int
    raw: Sequence[tuple[bytes, bytes]]
    body: bytes

    @property
    def headers(self) -> Mapping[str, str]:
        """Read the headers, which hardly anybody wants; their names are in lower case."""
        return _read(self.raw)


class HttpConnectionPool:
    """Connections to one server; shared by threads, never by processes."""

    def __init__(self, address: str, kept: int, headers: Mapping[str, str]) -> None:
        """Take an address apart; ``ValueError`` for one that cannot be."""
        parts = urlsplit(address)
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ValueError("not the address of a server")
        self._host = parts.hostname
        self._port = parts.port or _PORTS[parts.scheme]
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._path = parts.path.rstrip("/")
        self._head = _written({"Host": parts.netloc.rpartition("@")[2], **headers})
        self._kept = kept
        self._idle: deque[socket.socket] = deque()
        # A line that nobody closed takes its connections with it.
        weakref.finalize(self, _close, self._idle)

    def ask(
        self,
        method: str,
        target: str,
        seconds: float,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> HttpAnswer:
        """Send one request and read all of its answer, before so many seconds are over."""
        request = f"{method} {self._path}{target} HTTP/1.1\r\n".encode("ascii") + self._head
        if headers:
            request += _written(headers)
        if body is not None or method in {"POST", "PUT"}:
            request += b"Content-Length: %d\r\n" % len(body or b"")
        request += b"\r\n" + (body or b"")
        deadline = time.monotonic() + seconds
        connection = None
        keep = False
        try:
            connection = self._connection(deadline)
            connection.settimeout(_left(deadline))
            connection.sendall(request)
            hearing = _heard(connection, deadline)
            keep = hearing.keep
            return HttpAnswer(hearing.parser.get_status_code(), hearing.raw, hearing.body)
        except TimeoutError as error:
            raise UnansweredError(f"nothing came within {seconds:g} s") from error
        except httptools.HttpParserError as error:
            raise UnansweredError("what came is not HTTP") from error
        except OSError as error:
            raise UnansweredError(_words(error)) from error
        finally:
            if connection is not None:
                self._put(connection, keep=keep)

    def close(self) -> None:
        """Close what is kept."""
        _close(self._idle)

    def _connection(self, deadline: float) -> socket.socket:
        while self._idle:
            try:
                known = self._idle.pop()
            except IndexError:  # Another thread was quicker.
                break
            if _quiet(known):
                return known
            known.close()
        wait = min(CONNECT_SECONDS, _left(deadline))
        fresh = socket.create_connection((self._host, self._port), wait)
        fresh.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is None:
            return fresh
        try:
            return self._tls.wrap_socket(fresh, server_hostname=self._host)
        except BaseException:
            fresh.close()
            raise

    def _put(self, connection: socket.socket, *, keep: bool) -> None:
        if keep and len(self._idle) < self._kept:
            self._idle.append(connection)
        else:
            connection.close()


@dataclass(slots=True)
class _Hearing:
    """One answer while it comes in."""

    parser: httptools.HttpResponseParser = field(init=False)
    raw: list[tuple[bytes, bytes]] = field(default_factory=list)
    parts: list[bytes] = field(default_factory=list)
    begun: bool = False
    complete: bool = False
    keep: bool = False
    """Whether another question may follow on the same connection."""

    def __post_init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)

    @property
    def body(self) -> bytes:
        return b"".join(self.parts)

    def on_header(self, name: bytes, value: bytes) -> None:
        self.raw.append((name, value))

    def on_headers_complete(self) -> None:
        self.begun = True

    def on_body(self, part: bytes) -> None:
        self.parts.append(part)

    def on_message_complete(self) -> None:
        self.complete = True
        self.keep = self.parser.should_keep_alive()  # The parser forgets it after this.

    def ended(self) -> None:
        """Hear that the other side closed: an end only for an answer that named no other."""
        if not self.begun or {"content-length", "transfer-encoding"} & _read(self.raw).keys():
            raise ConnectionResetError
        self.complete = True


def _close(idle: deque[socket.socket]) -> None:
    while idle:
        idle.pop().close()


def _heard(connection: socket.socket, deadline: float) -> _Hearing:
    hearing = _Hearing()
    while not hearing.complete:
        connection.settimeout(_left(deadline))
        part = connection.recv(_READ_BYTES)
        if part:
            hearing.parser.feed_data(part)
        else:
            hearing.ended()
    return hearing


def _read(raw: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in raw}


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _quiet(connection: socket.socket) -> bool:
    """Return whether a kept connection is still there: only one that was closed has news."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return not poll.poll(0)


def _written(headers: Mapping[str, str]) -> bytes:
    text = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    if text.count("\n") != len(headers) or text.count("\r") != len(headers):
        raise ValueError("a header has more than one line")
    return text.encode("latin-1")


def _words(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or error}"
    return (error.strerror or "the connection broke off").lower()
