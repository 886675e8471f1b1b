"""A network that goes wrong on request: an HTTP-aware proxy in front of a real server.

Every request is read whole, recorded, and met by the first rule that wants it; without a rule it
is passed on as it came, ``Host`` and ``Authorization`` included, so that the signatures of the S3
gateway stay good. What a rule does is real: connections are reset, answers are lost after the
server gave them, requests are held and applied when their sender has long given up.
"""

from __future__ import annotations

import json
import re
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol, Self
from urllib.parse import urlsplit

from tests import injection
from tests.patience import LIMIT

HOST = "127.0.0.1"
ENOUGH_DROPS = 3
FORWARD_SECONDS = LIMIT
_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "expect"})


@dataclass(frozen=True)
class Answer:
    """What a server said, whole."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass
class Seen:
    """One request that reached the proxy."""

    method: str
    path: str
    headers: Mapping[str, str] = field(repr=False, default_factory=dict)
    body: bytes = field(repr=False, default=b"")
    applied: bool = False
    """Whether the server got it."""
    status: int | None = None
    """What the server, or the proxy in its place, answered."""


class Fault(Protocol):
    """What happens to one exchange."""

    def meet(self, exchange: Exchange) -> None: ...


class Exchange:
    """One request on its way, and the connection its answer is awaited on."""

    def __init__(self, proxy: Proxy, handler: _Handler, seen: Seen) -> None:
        self.proxy = proxy
        self.seen = seen
        self.rule: Rule | None = None
        self._handler = handler

    @property
    def port(self) -> int:
        """The port at the client's end."""
        return int(self._handler.client_address[1])

    def spared(self, harmless: bool = True) -> None:
        """Do not count a fault that found nothing to spoil; said before the answer is."""
        if harmless and self.rule is not None:
            self.rule.acted -= 1

    def forward(self) -> Answer:
        """Have the server do it."""
        target = urlsplit(self.proxy.target)
        connection = HTTPConnection(
            target.hostname or HOST, target.port or 80, timeout=FORWARD_SECONDS
        )
        try:
            connection.putrequest(
                self.seen.method, self.seen.path, skip_host=True, skip_accept_encoding=True
            )
            for name, value in self.seen.headers.items():
                if name.lower() not in _HOP:
                    connection.putheader(name, value)
            if self.seen.body or "content-length" in {key.lower() for key in self.seen.headers}:
                connection.putheader("Content-Length", str(len(self.seen.body)))
            elif self.seen.method in {"POST", "PUT"}:
                connection.putheader("Content-Length", "0")
            connection.endheaders(self.seen.body or None)
            self.seen.applied = True
            got = connection.getresponse()
            answer = Answer(got.status, tuple(got.getheaders()), got.read())
            self.seen.status = answer.status
            return answer
        finally:
            connection.close()

    def reply(self, answer: Answer, *, keep: int | None = None, drip: Drip | None = None) -> None:
        """Answer the client; ``keep`` promises all bytes and breaks off after so many."""
        with suppress(OSError):
            self._handler.write(answer, keep=keep, drip=drip)
        if keep is not None:
            self.reset()

    def reset(self) -> None:
        """Break the connection off without a word."""
        self._handler.reset()

    def wait_for(self, released: threading.Event) -> None:
        """Say nothing until released, or until the proxy ends."""
        self.proxy.silent.add(self.port)
        self.proxy.wait_for(released)
        self.proxy.silent.discard(self.port)


# --- faults ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pass:
    """Nothing happens; for rules that only count."""

    def meet(self, exchange: Exchange) -> None:
        exchange.reply(exchange.forward())


@dataclass(frozen=True)
class ResetBefore:
    """The connection breaks before the server got the request."""

    def meet(self, exchange: Exchange) -> None:
        exchange.reset()


@dataclass(frozen=True)
class LoseAnswer:
    """The server does it; the connection breaks before its answer arrives."""

    def meet(self, exchange: Exchange) -> None:
        exchange.forward()
        exchange.reset()


@dataclass(frozen=True)
class LoseAnswerThen:
    """As ``LoseAnswer``, and something else happens on the server before anybody can look."""

    action: Callable[[], object]

    def meet(self, exchange: Exchange) -> None:
        exchange.forward()
        self.action()
        exchange.reset()


@dataclass(frozen=True)
class Down:
    """The server is gone: this connection breaks, and new ones are refused until ``up``."""

    def meet(self, exchange: Exchange) -> None:
        exchange.proxy.down()


@dataclass(frozen=True)
class Say:
    """The proxy answers itself; the server never hears of it, unless ``applied``."""

    status: int
    message: str = "said by the proxy"
    applied: bool = False

    def meet(self, exchange: Exchange) -> None:
        if self.applied:
            exchange.forward()
        exchange.seen.status = self.status
        body = json.dumps({"message": self.message}).encode()
        exchange.reply(Answer(self.status, (("Content-Type", "application/json"),), body))


@dataclass(frozen=True)
class Hang:
    """Silence: not passed on, not answered, until released or the proxy ends."""

    released: threading.Event = field(default_factory=threading.Event)

    def meet(self, exchange: Exchange) -> None:
        exchange.wait_for(self.released)
        exchange.reset()


@dataclass(frozen=True)
class Hold:
    """Silence, and then it is applied after all; ``done`` is set when the server has answered."""

    released: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)

    def meet(self, exchange: Exchange) -> None:
        exchange.wait_for(self.released)
        if self.released.is_set():
            answer = exchange.forward()
            self.done.set()
            exchange.reply(answer)
        else:
            exchange.reset()

    def release(self) -> None:
        """Let it go on, and wait until the server has done it."""
        self.released.set()
        if not self.done.wait(FORWARD_SECONDS):
            raise TimeoutError("the held request was never there")


@dataclass(frozen=True)
class HangAfter:
    """The server does it; its answer never comes, and the connection stays open."""

    released: threading.Event = field(default_factory=threading.Event)

    def meet(self, exchange: Exchange) -> None:
        exchange.forward()
        exchange.wait_for(self.released)
        exchange.reset()


@dataclass(frozen=True)
class Truncate:
    """The body breaks off after ``keep`` bytes, its length promised in full; or the head, alone.

    ``honest``: the length is given as that of what is sent, so that HTTP itself sees no fault.
    """

    keep: int
    honest: bool = False

    def meet(self, exchange: Exchange) -> None:
        answer = exchange.forward()
        exchange.spared(self.keep >= len(answer.body) and bool(answer.body or self.honest))
        if self.honest:
            exchange.reply(Answer(answer.status, answer.headers, answer.body[: self.keep]))
        else:
            exchange.reply(answer, keep=self.keep)


@dataclass(frozen=True)
class Drip:
    """The body comes in drops; ``endless``: in so many that nobody waits for the last one."""

    size: int
    pause_seconds: float
    endless: bool = False

    def meet(self, exchange: Exchange) -> None:
        exchange.reply(exchange.forward(), drip=self)


@dataclass(frozen=True)
class Alter:
    """One bit of the answer's body is turned."""

    at: int = 0

    def meet(self, exchange: Exchange) -> None:
        answer = exchange.forward()
        body = bytearray(answer.body)
        exchange.spared(not body)
        if body:
            body[self.at] ^= 1
        exchange.reply(Answer(answer.status, answer.headers, bytes(body)))


@dataclass(frozen=True)
class AlterRequest:
    """One bit of the request's body is turned on the way."""

    at: int = 0

    def meet(self, exchange: Exchange) -> None:
        body = bytearray(exchange.seen.body)
        exchange.spared(not body)
        if body:
            body[self.at] ^= 1
        exchange.seen.body = bytes(body)
        exchange.reply(exchange.forward())


# --- rules ----------------------------------------------------------------------------------------


@dataclass
class Rule:
    """Which requests meet a fault: after ``skip`` that match, the next ``times`` (None: all)."""

    fault: Fault
    method: str = ""
    path: str = ""
    skip: int = 0
    times: int | None = 1
    where: Callable[[Seen], bool] | None = None
    """What else has to be true of a request, of its body for instance."""
    matched: int = 0
    met: int = 0
    acted: int = 0
    """How many exchanges its fault has spoiled, or is spoiling."""

    def wants(self, seen: Seen) -> bool:
        if not is_like(seen, self.method, self.path):
            return False
        if self.where is not None and not self.where(seen):
            return False
        self.matched += 1
        if self.matched <= self.skip or (self.times is not None and self.met >= self.times):
            return False
        self.met += 1
        return True


def is_like(seen: Seen, method: str, path: str) -> bool:
    """Tell whether a request has the method (if given) and a path that the pattern finds."""
    return method in {"", seen.method} and re.search(path, seen.path) is not None


class Proxy:
    """Listens on a port of its own in front of ``target``; one thread per connection."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.seen: list[Seen] = []
        self.problems: list[str] = []
        self.silent: set[int] = set()
        """The ports of those clients that wait for something that is not to come."""
        self._rules: list[Rule] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._live: set[socket.socket] = set()
        self._server: _Server | None = None
        self._port = 0
        self.up()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self.down()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self._port}"

    # --- what a test says ---------------------------------------------------------------------

    def add(self, rule: Rule) -> Rule:
        """From now on, requests that match meet a fault; the oldest rule comes first.

        The case that adds it fails unless a request has met it when the case is over.
        """
        if not isinstance(rule.fault, Pass):
            what = f"{type(rule.fault).__name__} of {rule.method or 'any request'} {rule.path}"
            injection.expect(what, lambda: rule.acted)
            if injection.OFF:
                return rule
        with self._lock:
            self._rules.append(rule)
        return rule

    @contextmanager
    def during(self, *rules: Rule) -> Iterator[None]:
        """Have rules for a while, and count only what happened in it."""
        self.forget()
        for rule in rules:
            self.add(rule)
        try:
            yield
        finally:
            with self._lock:
                self._rules.clear()

    def forget(self) -> None:
        """Forget what was seen."""
        with self._lock:
            self.seen.clear()

    def matching(self, method: str = "", path: str = "") -> list[Seen]:
        """Return the requests that came, applied or not."""
        with self._lock:
            return [seen for seen in self.seen if is_like(seen, method, path)]

    def down(self) -> None:
        """Refuse connections from now on, and break those that are open."""
        with self._lock:
            server, self._server = self._server, None
            live, self._live = self._live, set()
        for connection in live:  # First: those would be served while the server takes its leave.
            _reset(connection)
        if server is not None:
            server.shutdown()
            server.server_close()

    def up(self) -> None:
        """Take connections (again), always on the same port."""
        server = _Server((HOST, self._port), _Handler)
        server.proxy = self
        self._port = server.server_port
        self._server = server
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()

    def wait_for(self, released: threading.Event) -> None:
        """Wait until released, or until the proxy ends."""
        while not released.wait(0.02) and not self._closing.is_set():
            pass

    # --- what happens -------------------------------------------------------------------------

    def opened(self, connection: socket.socket) -> None:
        with self._lock:
            self._live.add(connection)

    def closed(self, connection: socket.socket) -> None:
        with self._lock:
            self._live.discard(connection)

    def handle(self, handler: _Handler, seen: Seen) -> None:
        """Let the first rule that wants it have the request."""
        with self._lock:
            gone = self._server is None
            if not gone:
                self.seen.append(seen)
            wanting = [rule for rule in self._rules if not gone and rule.wants(seen)]
        exchange = Exchange(self, handler, seen)
        if gone:
            exchange.reset()
            return
        rule = exchange.rule = wanting[0] if wanting else Rule(Pass())
        rule.acted += 1  # First: some faults end with their case only.
        rule.fault.meet(exchange)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    proxy: Proxy

    def shutdown_request(self, request: Any) -> None:
        """Close without a farewell: after it a reset would not be one."""
        self.close_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Broken connections are the trade here; the rest is a bug of the proxy."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            self.proxy.problems.append(repr(error))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.proxy.opened(self.connection)

    def finish(self) -> None:
        self.server.proxy.closed(self.connection)
        with suppress(OSError, ValueError):
            super().finish()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Say nothing."""

    def _any(self) -> None:
        headers = dict(self.headers.items())
        seen = Seen(self.command, self.path, headers, self._body())
        self.server.proxy.handle(self, seen)

    # The names that http.server looks for.
    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _any  # noqa: N815

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return b"".join(self._chunks())
        length = int(self.headers.get("Content-Length") or 0)
        return self.rfile.read(length) if length else b""

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().split(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass

    def write(self, answer: Answer, *, keep: int | None, drip: Drip | None) -> None:
        if keep is not None and not answer.body:
            self.wfile.write(f"{self.protocol_version} {answer.status}".encode())
            self.wfile.flush()
            return
        self.send_response_only(answer.status)
        for name, value in answer.headers:
            if name.lower() not in _HOP:
                self.send_header(name, value)
        length = _length(answer) if self.command == "HEAD" else str(len(answer.body))
        self.send_header("Content-Length", length)
        self.end_headers()
        body = answer.body if keep is None else answer.body[:keep]
        if drip is None:
            self.wfile.write(body)
        else:
            for start in range(0, len(body), drip.size):
                self.wfile.write(body[start : start + drip.size])
                self.wfile.flush()
                if drip.endless and start >= ENOUGH_DROPS * drip.size:
                    self.server.proxy.silent.add(self.client_address[1])
                time.sleep(drip.pause_seconds)  # the fault itself
        self.wfile.flush()

    def reset(self) -> None:
        self.close_connection = True
        _reset(self.connection)


def _length(answer: Answer) -> str:
    return next((value for key, value in answer.headers if key.lower() == "content-length"), "0")


def _reset(connection: socket.socket) -> None:
    with suppress(OSError):
        # Linger of no seconds: what is sent is a reset, not an orderly end.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RD)
    with suppress(OSError):
        connection.close()
