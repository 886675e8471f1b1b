"""What a worker answers to probes and to Prometheus: ``/healthz``, ``/readyz``, ``/metrics``."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET, AF_INET6, SHUT_RDWR, socket
from typing import Any, Final, Self

from perago.errors import RuntimeConfigError
from perago.redaction import hide

REQUEST_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.2
_MOST_AT_ONCE: Final = 16
_TEXT: Final = "text/plain; charset=utf-8"
Verdict = Callable[[], tuple[bool, str]]
Page = Callable[[], tuple[str, bytes]]
Answer = tuple[int, str, bytes]


class Endpoint:
    """A small HTTP server with a thread of its own; ``close`` ends both."""

    def __init__(self, address: str, healthy: Verdict, ready: Verdict, metrics: Page) -> None:
        pages: dict[str, Callable[[], Answer]] = {
            "/healthz": lambda: _verdict(healthy),
            "/readyz": lambda: _verdict(ready),
            "/metrics": lambda: (200, *metrics()),
        }
        host, port = _split(address)
        try:
            self._server = _Server(host, port, pages)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise RuntimeConfigError(
                f"PERAGO_HTTP is {address!r}, where nothing can listen: {why}",
                remedy="choose another address or a free port",
            ) from None
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            args=(_POLL_SECONDS,),
            name="perago-http",
            daemon=True,
        )
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def address(self) -> str:
        """Name where it listens; useful with port 0."""
        host, port = self._server.socket.getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def close(self) -> None:
        """Stop answering; a second time is fine."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join(REQUEST_SECONDS)
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    """Answers a few at a time; who takes long to ask makes room for who comes.

    A connection has so many seconds for all of its request and answer, however it drips.
    """

    daemon_threads = True
    block_on_close = False
    """A slow reader is left to its own timeout."""

    def __init__(self, host: str, port: int, pages: dict[str, Callable[[], Answer]]) -> None:
        self.address_family = AF_INET6 if ":" in host else AF_INET
        self.pages = pages
        self._free = threading.BoundedSemaphore(_MOST_AT_ONCE)
        self._turn = threading.Lock()
        self._since: dict[socket, float] = {}
        self._asking: dict[socket, None] = {}
        super().__init__((host, port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Take who comes, in place of who has been silent longest; turn away only a crowd."""
        if not self._free.acquire(blocking=False):
            with self._turn:
                oldest = next(iter(self._asking), None)
            if oldest is not None:
                self._hang_up(oldest)
            if oldest is None or not self._free.acquire(timeout=_POLL_SECONDS):
                self.shutdown_request(request)
                return
        with self._turn:
            self._since[request] = time.monotonic()
            self._asking[request] = None
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer one request."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.asked(request)
            with self._turn:
                self._since.pop(request, None)
            self._free.release()

    def asked(self, request: Any) -> None:
        """Note that a request is there: its answer is on its way."""
        with self._turn:
            self._asking.pop(request, None)

    def service_actions(self) -> None:
        """End what has taken too long; called several times a second."""
        until = time.monotonic() - REQUEST_SECONDS
        with self._turn:
            late = [request for request, since in self._since.items() if since < until]
        for request in late:
            self._hang_up(request)

    def _hang_up(self, request: socket) -> None:
        self.asked(request)
        with suppress(OSError):  # Its own thread may have closed it.
            request.shutdown(SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that hung up is no news."""


class _Handler(BaseHTTPRequestHandler):
    timeout = REQUEST_SECONDS
    server: _Server
    server_version = "perago"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer with a page."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """Answer without the page."""
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        self.server.asked(self.connection)
        page = self.server.pages.get(self.path.partition("?")[0])
        status, kind, body = _call(page) if page else (404, _TEXT, b"no such page\n")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class says so
        """Write no line per probe."""


def _call(page: Callable[[], Answer]) -> Answer:
    try:
        return page()
    except Exception as error:  # noqa: BLE001 - a broken page must not look like no worker
        return 500, _TEXT, f"{type(error).__name__}\n".encode()


def _verdict(ask: Verdict) -> Answer:
    good, text = ask()
    return 200 if good else 503, _TEXT, f"{hide(text)}\n".encode(errors="replace")


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise RuntimeConfigError(
            f"PERAGO_HTTP is {address!r}", remedy="write host:port, such as 127.0.0.1:9464"
        )
    return host.removeprefix("[").removesuffix("]"), int(port)
