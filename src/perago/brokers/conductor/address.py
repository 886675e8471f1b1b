"""Where Conductor is: people write its address with ``/api`` and without."""

from __future__ import annotations

from urllib.parse import urlsplit

from perago.errors import RuntimeConfigError

API = "/api"


def root_of(url: str) -> str:
    """Return the address without ``/api`` and without a slash at its end."""
    text = url.strip()
    try:
        parts = urlsplit(text)
        usable = (
            parts.scheme in {"http", "https"}
            and bool(parts.hostname)
            and parts.port != 0
            and not (parts.query or parts.fragment or parts.username or parts.password)
        )
    except ValueError:  # A port that is no number.
        usable = False
    if not usable:
        raise RuntimeConfigError(
            f"Conductor address {_shown(text)!a} is not one that can be used",
            remedy="set CONDUCTOR_SERVER_URL to one like http://host:8080/api",
        )
    return text.rstrip("/").removesuffix(API).rstrip("/")


def _shown(url: str) -> str:
    """Leave out what may be a password."""
    before, at, behind = url.rpartition("@")
    return f"{before.partition('://')[0]}://...@{behind}" if at else url
