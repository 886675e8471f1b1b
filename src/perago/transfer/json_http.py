"""Asking a server that answers in JSON: one exchange, and repeating what may be repeated.

The library underneath never repeats a request by itself: a repeated publish call destroyed another
writer's commit once. Each client says by a table of its own what may be sent again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from perago.redaction import hide
from perago.transfer.http_pool import HttpConnectionPool, UnansweredError
from perago.transfer.wire import parsed

OK: Final = range(200, 300)
TRIES: Final = 3
"""What may be repeated has a part of its time for each try: one that hangs is not the end of it."""
_PAUSES: Final = (0.1, 0.5, 2.0)
_LONGEST_WORDS: Final = 300


@dataclass(frozen=True, slots=True)
class Request:
    """One request, as it goes over the line."""

    method: str
    target: str
    seconds: float
    body: bytes | None = None
    headers: Mapping[str, str] | None = None
    plain: bool = False
    """Whether its answer may be text; otherwise one that is not JSON is no answer."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: no status when there was no answer; ``words`` are the server's own."""

    status: int | None
    body: Any = None
    words: str = ""
    text: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Return whether the server did what it was asked for."""
        return self.status in OK


def exchange(pool: HttpConnectionPool, request: Request) -> Reply:
    """Send one request, once."""
    try:
        answer = pool.ask(
            request.method, request.target, request.seconds, request.body, request.headers
        )
    except UnansweredError as error:
        return Reply(None, words=str(error))
    found = parsed(answer.body)
    text = answer.body.decode(errors="replace")
    if answer.status not in OK:
        words = _message(found) if isinstance(found, dict) else text
        return Reply(answer.status, found, words, text, answer.headers)
    if not request.plain and found is None and answer.body.strip() not in {b"", b"null"}:
        return Reply(None, words="what came is not JSON")
    return Reply(answer.status, found, "", text, answer.headers)


def repeated(
    send: Callable[[], Reply], seconds: float, may_retry: Callable[[int | None], bool]
) -> Reply:
    """Send until the answer is good, nothing may be sent again, or the time is over."""
    last = time.monotonic() + seconds
    for pause in _PAUSES:
        reply = send()
        if reply.good or not may_retry(reply.status) or time.monotonic() > last:
            return reply
        time.sleep(pause)
    return send()


def repeatable_words(words: str, secrets: Collection[str | None]) -> str:
    """Return a server's words in one line, cut; some repeat what they were sent, keys included."""
    for secret in secrets:
        words = words.replace(secret, "...") if secret else words
    return " ".join(hide(words).split())[:_LONGEST_WORDS]


def _message(answer: Mapping[str, Any]) -> str:
    """Return what a refusal says; Conductor puts what is wrong with a definition into a list."""
    details = answer.get("validationErrors")
    if isinstance(details, list):
        found = [str(each.get("message", "")) for each in details if isinstance(each, dict)]
        if any(found):
            return "; ".join(filter(None, found))
    return str(answer.get("message") or "")
