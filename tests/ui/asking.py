"""Asks the page as a browser would, without a server: what was sent is looked at byte by byte."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from starlette.types import ASGIApp, Message

from perago.clock import SystemClock
from perago.settings import load_settings
from perago.stores.embedded import EmbeddedStore
from perago.ui.access import HEADERS, AccessKeys, Rules
from perago.ui.application import application
from perago.ui.previewing import Bounds
from perago.ui.sources import PageSources

HOST = "127.0.0.1:8000"
KEYS = AccessKeys("the-token-of-the-address", "the-value-of-the-cookie", "the-key-of-a-form")
COOKIE = "perago-ui-8000"


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass
class Browser:
    """A browser that was let in, and the home it looks at."""

    home: Path
    bounds: Bounds = field(default_factory=lambda: Bounds(seconds=60))
    cookie: str = KEYS.session

    def __post_init__(self) -> None:
        self.store = EmbeddedStore(self.home / "store")
        sources = PageSources(
            load_settings({"PERAGO_HOME": str(self.home)}, self.home.parent), SystemClock()
        )
        rules = Rules(frozenset({HOST}), frozenset({f"http://{HOST}"}), KEYS)
        self.app: ASGIApp = application(sources, rules, COOKIE, secure=False, bounds=self.bounds)

    def get(self, path: str, /, **query: str) -> Answer:
        """Ask for an address whose path is written as a browser sends it."""
        said = "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())
        # In a thread of its own: the one that drives a real browser has an event loop already.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, self._ask(path, said)).result()

    def page(self, path: str, /, **query: str) -> Answer:
        """Ask for a page, and see that it is one that may be sent to anybody."""
        answer = self.get(path, **query)
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert len(answer.body) <= 100_000, len(answer.body)
        assert "Traceback" not in answer.text
        assert "Perago made a mistake" not in answer.text
        assert answer.status < 500, answer.text
        for name, value in HEADERS.items():
            assert answer.headers[name.lower()] == value
        return answer

    async def _ask(self, path: str, query: str) -> Answer:
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [
                (b"host", HOST.encode()),
                (b"cookie", f"{COOKIE}={self.cookie}".encode()),
            ],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8000),
        }
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        start = next(message for message in sent if message["type"] == "http.response.start")
        headers = {name.decode(): value.decode() for name, value in start["headers"]}
        return Answer(start["status"], headers, b"".join(m.get("body", b"") for m in sent))
