"""The token that a Conductor with accounts wants on every request; it is kept only in memory."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

USUAL_SECONDS = 45 * 60.0
"""How long a token is used that does not say how long it is good."""
_EARLY_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Token:
    """A token, and when it is to be replaced (seconds since the epoch)."""

    text: str = field(repr=False)
    until: float


def token_of(text: str, now: float) -> Token:
    """Read out of a token how long it is good; it is replaced a little before."""
    ends = _expiry(text)
    left = USUAL_SECONDS if ends is None else max(0.0, ends - now)
    return Token(text, now + left * (1 - _EARLY_SHARE))


def _expiry(text: str) -> float | None:
    """Return ``exp`` of a JSON web token; None when it is none, or does not say."""
    parts = text.split(".")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return float(claims["exp"])
    except (IndexError, KeyError, TypeError, ValueError, RecursionError):
        return None


class Tokens:
    """Gets a token when one is needed; shared by threads, which then wait for one request."""

    def __init__(self, fetch: Callable[[], str | None], now: Callable[[], float]) -> None:
        self._fetch = fetch
        self._now = now
        self._lock = threading.Lock()
        self._token: Token | None = None
        self._wanted = True

    def current(self) -> str | None:
        """Return a token that is good, or None for a server that knows no tokens."""
        with self._lock:
            if self._wanted and (self._token is None or self._now() >= self._token.until):
                text = self._fetch()
                self._wanted = text is not None
                self._token = token_of(text, self._now()) if text is not None else None
            return self._token.text if self._token is not None else None

    def spent(self, text: str) -> None:
        """Forget a token that the server refused, unless it was replaced in the meantime."""
        with self._lock:
            if self._token is not None and self._token.text == text:
                self._token = None
