"""Serves the page: under which address, with which keys, until it is stopped."""

from __future__ import annotations

import ipaddress
import logging
import secrets
import signal
import socket
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import uvicorn

from perago.clock import SystemClock
from perago.errors import UsageError
from perago.filesystem.home import is_home
from perago.redaction import hide
from perago.settings import Settings
from perago.ui.access import AccessKeys, Rules
from perago.ui.application import TOKEN, application
from perago.ui.sources import PageSources

LOOPBACK: Final = "127.0.0.1"
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
IPV6: Final = 6
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
    """Refuse what would send the cookie over a network in clear (Z4); return it as it is meant."""
    serving = replace(serving, proxy=serving.proxy.lower().rstrip("/"))
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
    if _is_everywhere(serving.host) and not serving.proxy:
        raise UsageError(
            f"--host {serving.host} is not a name that people type",
            remedy="name the address or host name under which they reach it",
        )
    if serving.proxy.startswith("http://") and not is_loopback(serving.host):
        raise UsageError(
            f"--behind-proxy {serving.proxy} has no TLS, and --host {serving.host} is reached by"
            " others",
            remedy="give its https:// address, or serve on 127.0.0.1 for a proxy on this machine",
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
        return host.lower() == "localhost"


def _is_everywhere(host: str) -> bool:
    """Return whether an address stands for all addresses of this machine."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def _is_address(text: str) -> bool:
    scheme, mark, name = text.partition("://")
    return bool(mark) and scheme in DEFAULT_PORTS and bool(name) and "/" not in name


def rules_of(serving: Serving, port: int, keys: AccessKeys) -> Rules:
    """Name the hosts under which the page is served; others are somebody's trick."""
    scheme = "https" if serving.tls else "http"
    loopback = {"localhost", LOOPBACK} if is_loopback(serving.host) else set()
    hosts = {f"{_name(host)}:{port}" for host in {serving.host, *loopback}}
    origins = {f"{scheme}://{host}" for host in hosts}
    if serving.proxy:
        origins.add(serving.proxy)
        hosts.add(serving.proxy.partition("://")[2])
    found = {each for host in hosts for each in _as_sent(host)}
    return Rules(
        frozenset(found),
        frozenset(each for origin in origins for each in _as_sent(origin)),
        keys,
        serving.changes,
    )


def _as_sent(host: str) -> set[str]:
    """Return a host or origin as browsers send it: without a port that needs no saying."""
    bare = next((host.removesuffix(f":{port}") for port in DEFAULT_PORTS.values()
                 if host.endswith(f":{port}")), host)  # fmt: skip
    return {host, bare}


def _name(host: str) -> str:
    """Write an address as it stands in a URL."""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return host.lower()
    return f"[{found}]" if found.version == IPV6 else str(found)


def new_keys() -> AccessKeys:
    """Draw the secrets of one start."""
    return AccessKeys(*(secrets.token_urlsafe(_KEY_BYTES) for _ in range(3)))


def serve(settings: Settings, serving: Serving, begun: Callable[[str], None]) -> None:
    """Serve until a signal comes; ``begun`` is told the address with its one-time token."""
    serving = check(serving)
    if not is_home(settings.home):
        raise UsageError(
            f"there is no Perago home at {settings.home}",
            remedy="run 'perago run' here first, change directory, or name one with --home",
        )
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
    base = serving.proxy or f"{'https' if serving.tls else 'http'}://{_name(serving.host)}:{port}"
    _log_without_keys()
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            log_config=None,
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


class _WithoutKeys(logging.Formatter):
    """Writes a mistake of ours with its place, but no key with it (V8)."""

    def format(self, record: logging.LogRecord) -> str:
        return hide(super().format(record))


def _log_without_keys() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(_WithoutKeys("%(message)s"))
    logger = logging.getLogger("uvicorn.error")
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.WARNING)


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
            remedy="name an address of this machine, and a port that is free or none",
        ) from None
    return made


def open_browser(address: str, absent: Callable[[], None]) -> None:
    """Open the address in the user's browser; ``absent`` is called where there is none."""
    try:
        opened = webbrowser.open(address)
    except webbrowser.Error:
        opened = False
    if not opened:
        absent()
