"""Free ports on the loopback address, and asking whether a server answers there."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path

from perago.dev.errors import ServerNotStartedError
from perago.process.lock import FileLock

HOST = "127.0.0.1"
_TRIES = 50
# A server that starts on a busy machine may take a while for its first answer.
_ANSWER_SECONDS = 30.0


@contextmanager
def reserved_port(locks: Path, preferred: int = 0) -> Iterator[int]:
    """Choose a port and keep other instances off it until the block ends.

    Without that, two instances could choose the same one, and the first server's answer would be
    taken for the second's.
    """
    for attempt in range(_TRIES):
        port = preferred if preferred and attempt == 0 else _free_port()
        with FileLock(locks / f"port-{port}.lock") as lock:
            if lock.acquire() and is_free(port):
                try:
                    yield port
                finally:
                    lock.release(remove=True)
                return
    raise ServerNotStartedError(
        "no free port was found on this machine", remedy="stop what you no longer need"
    )


def is_free(port: int) -> bool:
    """Return whether a server could listen there now."""
    with socket.socket() as probe:
        # As servers do: a connection that is only lingering does not keep the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def answers(url: str) -> bool:
    """Return whether a health check says yes."""
    # A proxy of the environment has no business between two programs of one machine.
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(url, timeout=_ANSWER_SECONDS) as response:
            return int(response.status) < HTTPStatus.BAD_REQUEST
    except (OSError, urllib.error.URLError, HTTPException):
        return False
