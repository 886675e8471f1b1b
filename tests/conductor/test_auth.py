"""Accounts (W7, I7, V8): a token from key and secret, replaced in time, never told to anybody."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from perago.brokers.conductor.client import ConductorClient
from perago.brokers.conductor.tokens import USUAL_SECONDS, Tokens, token_of
from perago.errors import BrokerUnavailableError, PermissionRefusedError
from perago.settings import ConductorSettings
from tests.patience import LIMIT

KEY, SECRET = "CANARY-KEY", "CANARY-SECRET"
NOW = 1_800_000_000.0


def jwt(**claims: Any) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"CANARYHEAD.{body}.CANARYSIGN"


class Accounts(ThreadingHTTPServer):
    """A Conductor with accounts, as far as a client sees it."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.lifetime = 3600.0
        self.good: set[str] = set()
        self.logins = 0
        self.asked: list[tuple[str, str | None]] = []
        self.login_status = 200
        self.refuse_all = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/api"

    def times(self, path: str) -> int:
        return sum(path in asked for asked, _ in self.asked)


class _Handler(BaseHTTPRequestHandler):
    server: Accounts
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Say nothing."""

    def _answer(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        token = self.headers.get("X-Authorization")
        self.server.asked.append((self.path, token))
        if token not in self.server.good or self.server.refuse_all:
            words = f"no good: token {token} secret {SECRET}"
            self._answer(401, {"message": words})
        elif "/poll/" in self.path:
            self._answer(200, [])
        else:
            self._answer(200, {"taskId": "t", "status": "IN_PROGRESS"})

    def do_POST(self) -> None:
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, None))
        assert self.path == "/api/token"
        if self.server.login_status != 200:
            self._answer(self.server.login_status, {"message": f"wrong: {json.dumps(given)}"})
        elif given != {"keyId": KEY, "keySecret": SECRET}:
            self._answer(401, {"message": f"wrong: {json.dumps(given)}"})
        else:
            self.server.logins += 1
            token = jwt(exp=time.time() + self.server.lifetime, n=self.server.logins)
            self.server.good.add(token)
            self._answer(200, {"token": token})


@pytest.fixture
def accounts() -> Iterator[Accounts]:
    server = Accounts()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.shutdown()
    thread.join(LIMIT)
    server.server_close()


def client_of(accounts: Accounts, secret: str = SECRET) -> ConductorClient:
    return ConductorClient(ConductorSettings(accounts.url, KEY, secret))


def test_one_token_serves_many_requests_and_threads(accounts: Accounts) -> None:
    client = client_of(accounts)
    threads = [threading.Thread(target=client.task, args=("t",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert accounts.logins == 1
    assert accounts.times("/api/tasks/t") == 8
    client.close()


def test_a_token_is_replaced_before_it_expires(accounts: Accounts) -> None:
    accounts.lifetime = 0.0
    client = client_of(accounts)
    client.task("t")
    client.task("t")
    assert accounts.logins == 2
    client.close()


@pytest.mark.parametrize("call", ["read", "poll"])
def test_a_refused_token_is_replaced_once(accounts: Accounts, call: str) -> None:
    """Also for a poll, which is never repeated otherwise: a refused one handed nothing out."""
    client = client_of(accounts)
    client.task("t")
    accounts.good.clear()
    if call == "read":
        assert client.task("t") is not None
    else:
        assert client.poll("count", "w", 1) == []
    assert accounts.logins == 2
    accounts.refuse_all = True
    with pytest.raises(PermissionRefusedError, match="CONDUCTOR_AUTH_KEY"):
        client.task("t")
    assert accounts.logins == 3
    client.close()


def test_a_server_without_accounts_is_asked_without_a_token(accounts: Accounts) -> None:
    """The open source server has no ``/token``: it answers 404."""
    accounts.login_status = 404
    client = client_of(accounts)
    for _ in range(2):
        with pytest.raises(PermissionRefusedError):  # This one has, so it wants one.
            client.task("t")
    assert accounts.times("/api/token") == 1
    assert {token for path, token in accounts.asked if path == "/api/tasks/t"} == {None}
    client.close()


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, PermissionRefusedError), (401, PermissionRefusedError), (503, BrokerUnavailableError)],
)
def test_v8_what_goes_wrong_never_tells_a_secret(
    accounts: Accounts, status: int, kind: type[Exception]
) -> None:
    accounts.login_status = status
    client = client_of(accounts)
    with pytest.raises(kind) as told:
        client.task("t")
    assert "log in to Conductor" in str(told.value)
    assert "CANARY" not in str(told.value) + repr(told.value)
    client.close()


def test_v8_a_server_that_repeats_what_it_was_sent_is_not_quoted(accounts: Accounts) -> None:
    client = client_of(accounts)
    accounts.refuse_all = True
    with pytest.raises(PermissionRefusedError) as told:
        client.task("t")
    assert "no good" in str(told.value)
    assert "CANARY" not in str(told.value) + repr(client) + repr(vars(client)["_tokens"])
    assert "CANARY" not in repr(ConductorSettings(accounts.url, KEY, SECRET))
    client.close()


def test_a_wrong_secret_is_one_sentence(accounts: Accounts) -> None:
    client = client_of(accounts, "CANARY-WRONG")
    with pytest.raises(PermissionRefusedError, match="CONDUCTOR_AUTH_SECRET") as told:
        client.task("t")
    assert "CANARY" not in str(told.value)
    client.close()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (jwt(exp=NOW + 1000), 900.0),
        (jwt(exp=NOW - 5), 0.0),
        (jwt(sub="x"), USUAL_SECONDS * 0.9),
        (jwt(exp="soon"), USUAL_SECONDS * 0.9),
        ("opaque", USUAL_SECONDS * 0.9),
        ("a.b.c", USUAL_SECONDS * 0.9),
        ("a.W10.c", USUAL_SECONDS * 0.9),
        ("", USUAL_SECONDS * 0.9),
    ],
)
def test_how_long_a_token_is_used(text: str, left: float) -> None:
    token = token_of(text, NOW)
    assert token.until - NOW == pytest.approx(left)
    assert text not in repr(token) or not text


def test_a_token_that_was_replaced_meanwhile_is_kept() -> None:
    """Two threads meet the same refusal: the second must not throw the new token away."""
    given = iter(["one", "two", "three"])
    tokens = Tokens(lambda: next(given), lambda: NOW)
    assert tokens.current() == "one"
    tokens.spent("one")
    assert tokens.current() == "two"
    tokens.spent("one")
    assert tokens.current() == "two"
