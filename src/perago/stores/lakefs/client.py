"""The only file that speaks HTTP with the lakeFS API. A timeout on every call (section 13).

What may be repeated is repeated by the table in ``errors``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

import urllib3

from perago.errors import RuntimeConfigError
from perago.redaction import hidden_words, hide
from perago.settings import LakeFSSettings
from perago.stores.lakefs.errors import Call, may_retry, translate, unanswered
from perago.stores.lakefs.sending import STREAM, pool
from perago.transfer.http_pool import HttpAnswer, HttpConnectionPool, UnansweredError
from perago.transfer.json_http import (
    OK,
    TRIES,
    Reply,
    Request,
    exchange,
    repeatable_words,
    repeated,
)
from perago.transfer.wire import JSON, parsed

CALL_SECONDS = 30.0
PAGE = 1000
_BYTES = {"Content-Type": "application/octet-stream"}


@dataclass(frozen=True, slots=True)
class Ask:
    """One request: ``what`` names it in errors, its first word the permission it needs."""

    what: str
    method: str
    path: str
    call: Call = Call.READ
    query: Mapping[str, Any] | None = None
    body: Any = None
    timeout_seconds: float = CALL_SECONDS
    plain: bool = False
    """Its answer is no JSON, and is not looked at."""
    once: bool = False
    """It is not repeated: whoever asks has no time for it."""


class LakeFSClient:
    """Connections to one server; shared by threads, never by processes.

    Questions and small objects go over a line; bodies that are read or sent piece by piece
    through a pool.
    """

    def __init__(self, settings: LakeFSSettings, connections: int = 32) -> None:
        self.endpoint = settings.endpoint.rstrip("/").removesuffix("/api/v1")
        refusal = RuntimeConfigError(
            f"lakeFS endpoint {settings.endpoint!a} is not an address",
            remedy="set LAKECTL_SERVER_ENDPOINT_URL to one that starts with http or https",
        )
        if not self.endpoint.startswith(("http://", "https://")):
            raise refusal
        headers = urllib3.make_headers(
            basic_auth=f"{settings.access_key_id}:{settings.secret_access_key}",
            user_agent="perago",
        )
        try:
            self._line = HttpConnectionPool(self.endpoint, connections, headers)
            self._pool = pool(self.endpoint, connections, headers)
        except ValueError:
            raise refusal from None
        self._path = urlsplit(self.endpoint).path
        token = headers["authorization"].removeprefix("Basic ")
        self._secrets = (settings.secret_access_key, token)
        self.requests = 0

    def ask(self, ask: Ask) -> Any:
        """Send a request and read its JSON answer; repeats only what may be repeated.

        All tries together take little longer than its timeout.
        """
        again = may_retry(ask.call, None) and not ask.once
        seconds = ask.timeout_seconds / (TRIES if again else 1)
        reply = repeated(
            lambda: self._send(ask, seconds),
            ask.timeout_seconds,
            lambda status: not ask.once and may_retry(ask.call, status),
        )
        if reply.good:
            return reply.body
        words = self._words(reply.words)
        if reply.status is None:
            raise unanswered(ask.call, ask.what, words)
        raise translate(ask.call, reply.status, words, ask.what)

    def pages(self, ask: Ask) -> Iterator[Any]:
        """Walk a listing page by page; ``after`` and ``amount`` may be in the query."""
        query: dict[str, Any] = {"amount": PAGE, "after": "", **(ask.query or {})}
        while True:
            page = self.ask(
                Ask(ask.what, ask.method, ask.path, ask.call, query, None, ask.timeout_seconds)
            )
            yield from page["results"]
            if not page["pagination"]["has_more"]:
                return
            query["after"] = page["pagination"]["next_offset"]

    def header(self, method: str, path: str, name: str) -> str:
        """Return one header of an answer; empty when there is none."""
        try:
            answer = self._line.ask(method, _target(path, {}), CALL_SECONDS)
        except UnansweredError:
            return ""
        return answer.headers.get(name, "")

    def read(self, what: str, path: str, query: Mapping[str, Any]) -> bytes:
        """Read a small object, in one piece."""
        return self._whole(Call.READ, what, "GET", path, query).body

    def write(
        self, what: str, path: str, query: Mapping[str, Any], content: bytes
    ) -> Mapping[str, Any]:
        """Send a small object, in one piece."""
        return _said(what, self._whole(Call.PRIVATE, what, "POST", path, query, content).body)

    @contextmanager
    def body(
        self, what: str, path: str, query: Mapping[str, Any]
    ) -> Iterator[urllib3.BaseHTTPResponse]:
        """Open an object for reading; what breaks off in the middle is an error."""
        self.requests += 1
        answer = None
        try:
            answer = self._pool.request(
                "GET", self._url(path, query), timeout=STREAM, preload_content=False
            )
            if answer.status not in OK:
                raise translate(Call.READ, answer.status, "", what)
            yield answer
            answer.release_conn()
            answer = None
        except urllib3.exceptions.HTTPError as error:
            raise unanswered(Call.READ, what, type(error).__name__) from error
        finally:
            if answer is not None:  # Half read: this connection is of no more use.
                answer.close()

    def send(
        self,
        what: str,
        path: str,
        query: Mapping[str, Any],
        parts: Iterable[bytes],
        size: int | None = None,
    ) -> Mapping[str, Any]:
        """Send an object; not repeated, because its parts are read only once."""
        headers = {**self._pool.headers, **_BYTES}
        if size is not None:
            headers["Content-Length"] = str(size)
        self.requests += 1
        try:
            answer = self._pool.request(
                "POST",
                self._url(path, query),
                body=parts,
                headers=headers,
                timeout=STREAM,
            )
        except urllib3.exceptions.HTTPError as error:
            raise unanswered(Call.PRIVATE, what, type(error).__name__) from error
        if answer.status not in OK:
            raise translate(Call.PRIVATE, answer.status, self._message(answer.data), what)
        return _said(what, answer.data)

    def close(self) -> None:
        """Close the connections."""
        self._line.close()
        self._pool.close()

    def _url(self, path: str, query: Mapping[str, Any]) -> str:
        return self._path + _target(path, query)

    def _whole(
        self,
        call: Call,
        what: str,
        method: str,
        path: str,
        query: Mapping[str, Any],
        content: bytes | None = None,
    ) -> HttpAnswer:
        """Move an object on the line; whoever asked repeats it, and verifies what came."""
        self.requests += 1
        headers = None if content is None else _BYTES
        try:
            answer = self._line.ask(method, _target(path, query), CALL_SECONDS, content, headers)
        except UnansweredError as error:
            raise unanswered(call, what, str(error)) from error
        if answer.status not in OK:
            raise translate(call, answer.status, self._message(answer.body), what)
        return answer

    def _message(self, body: bytes) -> str:
        found = parsed(body)
        return self._words(str(found.get("message", ""))) if isinstance(found, dict) else ""

    def _send(self, ask: Ask, seconds: float) -> Reply:
        body = None if ask.body is None else json.dumps(_said_aloud(ask.body)).encode()
        headers = None if body is None else JSON
        self.requests += 1
        target = _target(ask.path, ask.query or {})
        request = Request(ask.method, target, seconds, body, headers, ask.plain)
        return exchange(self._line, request)

    def _words(self, text: str) -> str:
        return repeatable_words(text, self._secrets)


def _said_aloud(body: Any) -> Any:
    """Return a body whose words are kept for everybody to read: those of commits and merges."""
    if not isinstance(body, dict) or "message" not in body:
        return body
    told: dict[str, object] = {"message": hide(str(body["message"]))}
    if words := body.get("metadata"):
        told["metadata"] = hidden_words(words)
    return {**body, **told}


def _said(what: str, body: bytes) -> Mapping[str, Any]:
    """Read what lakeFS says of an object; another's friendly page is no word of it."""
    found = parsed(body)
    if not isinstance(found, dict):
        raise unanswered(Call.PRIVATE, what, "what came is not JSON")
    return found


def _target(path: str, query: Mapping[str, Any]) -> str:
    asked = "&".join(f"{key}={quote(_plain(value), safe='/')}" for key, value in query.items())
    return f"/api/v1{path}?{asked}" if asked else f"/api/v1{path}"


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
