"""What the HTTP edges share: how a path is spelled, and what is in a body."""

from __future__ import annotations

import functools
import json
from typing import Any
from urllib.parse import quote

from perago.errors import NotFoundError
from perago.protocol import plain

JSON = {"Content-Type": "application/json"}


def parsed(data: bytes) -> Any:
    """Read an answer; None for what is not JSON.

    A value in it that is too deep or too long to be read is told as such (see
    :mod:`perago.protocol.plain`): one bad task must not hide the others of a poll.
    """
    try:
        return json.loads(data) if data else None
    except (ValueError, RecursionError):
        text = plain.readable(data.decode(errors="replace"))
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None


@functools.lru_cache(256)  # Thousands of objects are asked for below the same path.
def path_of(*parts: str) -> str:
    """Join path segments, each quoted whole."""
    for part in parts:
        if part in {"", ".", ".."}:  # Libraries on the way would take it for a direction.
            raise NotFoundError(f"{part!r} names nothing on a server", remedy="check the name")
    return "/" + "/".join(quote(part, safe="") for part in parts)
