"""What the HTTP edges share: bounded waits, whole answers, no addresses in what people read."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import urllib3

from perago.errors import NotFoundError

CONNECT_SECONDS = 5.0
_READ_BYTES = 1 << 16


def connections(
    address: str, count: int, headers: Mapping[str, str]
) -> tuple[urllib3.HTTPConnectionPool, str]:
    """Open a pool of connections to one server; returns it with the path of the address.

    A pool for many servers would take every address apart again at every request.
    """
    pool = urllib3.connection_from_url(address, maxsize=count, retries=False, headers=headers)
    return pool, (urlsplit(address).path or "").rstrip("/")


def patience(seconds: float) -> urllib3.Timeout:
    """Bound both waits of a request; a server that does not even listen is given up sooner."""
    return urllib3.Timeout(connect=min(CONNECT_SECONDS, seconds), read=seconds)


def whole(answer: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
    """Read all of an answer; drops that keep every single read alive still have to end in time."""
    parts: list[bytes] = []
    while part := answer.read1(_READ_BYTES):
        parts.append(part)
        if time.monotonic() > deadline:
            answer.close()
            raise urllib3.exceptions.TimeoutError
    answer.release_conn()
    return b"".join(parts)


def parsed(data: bytes) -> Any:
    """Read an answer; None for what is no JSON."""
    try:
        return json.loads(data) if data else None
    except ValueError:
        return None


def reason(error: Exception) -> str:
    """Say what happened without the address and its query, which may be long."""
    return type(error).__name__


def path_of(*parts: str) -> str:
    """Join path segments, each quoted whole."""
    for part in parts:
        if part in {"", ".", ".."}:  # Libraries on the way would take it for a direction.
            raise NotFoundError(f"{part!r} names nothing on a server", remedy="check the name")
    return "/" + "/".join(quote(part, safe="") for part in parts)
