"""Serves the page: under which address, with which keys, until it is stopped."""

from __future__ import annotations

import ipaddress
import secrets
import signal
import socket
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uvicorn

from perago.clock import SystemClock
from perago.errors import UsageError
from perago.settings import Settings
from perago.ui.access import AccessKeys, Rules
from perago.ui.application import TOKEN, application
from perago.ui.sources import PageSources

LOOPBACK: Final = "127.0.0.1"
_KEY_BYTES: Final = 32
_LEAST_PORT, _MOST_PORT = 0, 65535


@dataclass(frozen=True, slots=True)
class Serving:
    """How the page is to be served."""

    host: str = LOOPBACK
    port: int = 0
    certificate: Path | None = None
    key: Path | None = None
    proxy: str = ""
    """The public address, as ``https://data.example.com``, where a proxy is in front."""
    changes: bool = False

    @property
    def tls(self) -> bool:
        """Whether this process speaks TLS itself."""
        return self.certificate is not None and self.key is not None


def check(serving: Serving) -> Serving:
    """Deny what would send the cookie over a network in clear (Z4)."""
    if not _LEAST_PORT <= serving.port <= _MOST_PORT:
        raise UsageError(f"--port {serving.port} is not a port", remedy="use 0 to 65535")
    if (serving.certificate is None) != (serving.key is None):
        raise UsageError("--tls-cert and --tls-key belong together", remedy="give both, or neither")
    for path in (serving.certificate, serving.key):
        if path is not None and not path.is_file():
            raise UsageError(f"there is no file {path}", remedy="name a PEM file")
    if serving.proxy and not _is_address(serving.proxy):
        raise UsageError(
            f"--behind-proxy {serving.proxy!r} is not an address",
            remedy="give what people type, such as https://data.example.com",
        )
    if not is_loopback(serving.host) and not serving.tls and not serving.proxy:
        raise UsageError(
            f"--host {serving.host} is reached by others, and without TLS they could read along",
            remedy="give --tls-cert and --tls-key, or --behind-proxy with the address of a proxy",
        )
    return serving


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_address(text: str) -> bool:
    scheme, mark, name = text.partition("://")
    return bool(mark) and scheme in {"http", "https"} and bool(name) and "/" not in name


def rules_of(serving: Serving, port: int, keys: AccessKeys) -> Rules:
    """Name the hosts under which the page is served; others are somebody's trick."""
    scheme = "https" if serving.tls else "http"
    names = {serving.host, "localhost", LOOPBACK} if is_loopback(serving.host) else {serving.host}
    hosts = {f"{_bracketed(name)}:{port}" for name in names}
    origins = {f"{scheme}://{host}" for host in hosts}
    if serving.proxy:
        origins.add(serving.proxy.lower())
        hosts.add(serving.proxy.lower().partition("://")[2])
    return Rules(frozenset(hosts), frozenset(origins), keys, serving.changes)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def new_keys() -> AccessKeys:
    """Draw the secrets of one start."""
    return AccessKeys(*(secrets.token_urlsafe(_KEY_BYTES) for _ in range(3)))


def serve(settings: Settings, serving: Serving, begun: Callable[[str], None]) -> None:
    """Serve until a signal comes; ``begun`` is told the address with its one-time token."""
    check(serving)
    sources = PageSources(settings, SystemClock())
    _ = sources.home.state  # A home that cannot be read is said now, and one of before is upgraded.
    listening = _listen(serving)
    port = listening.getsockname()[1]
    keys = new_keys()
    rules = rules_of(serving, port, keys)
    secure = serving.tls or serving.proxy.startswith("https://")
    app = application(
        sources,
        rules,
        f"perago-ui-{port}",
        secure=secure,
        ending=lambda: server.should_exit,
    )
    base = serving.proxy or f"{'https' if serving.tls else 'http'}://{_name(serving)}:{port}"
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ssl_certfile=serving.certificate,
            ssl_keyfile=serving.key,
            timeout_graceful_shutdown=5,
        )
    )

    def end(*_: object) -> None:
        server.should_exit = True

    # Before the server has handlers of its own, and when it has ended: it raises a signal again.
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, end)
    begun(f"{base}/?{TOKEN}={keys.token}")
    with listening:
        server.run(sockets=[listening])


def _name(serving: Serving) -> str:
    return _bracketed(serving.host)


def _listen(serving: Serving) -> socket.socket:
    try:
        found = socket.getaddrinfo(serving.host, serving.port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(found[0], socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(found[4])
        made.listen()  # A browser that is quicker than the server waits instead of being refused.
    except OSError as error:
        raise UsageError(
            f"the page cannot be served at {serving.host}:{serving.port}: {error.strerror}",
            remedy="name another --port, or leave it out for a free one",
        ) from None
    return made


def open_browser(address: str) -> None:
    """Open the address in the user's browser, where there is one."""
    with suppress(webbrowser.Error):
        webbrowser.open(address)
