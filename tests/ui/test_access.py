"""Z4: who may ask the page for what, over all combinations that differ."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from perago.errors import UsageError
from perago.ui.access import (
    HEADERS,
    AccessKeys,
    Allow,
    Asked,
    Deny,
    Enter,
    Leave,
    Rules,
    Verdict,
    judge,
    same,
)
from perago.ui.serving import Serving, check, is_loopback, new_keys, rules_of

KEYS = AccessKeys("token", "session", "form")
HOST = "127.0.0.1:80"
ORIGIN = f"http://{HOST}"


def rules(*, changes: bool) -> Rules:
    return Rules(frozenset({HOST}), frozenset({ORIGIN}), KEYS, changes)


def expected(asked: Asked, *, changes: bool, used: bool) -> type[Verdict]:
    """Say the same in other words: what has to hold for each answer but a refusal."""
    if asked.host != HOST:
        return Deny
    reads = asked.method in {"GET", "HEAD"}
    if reads and asked.path.startswith("/static/"):
        return Allow
    if asked.cookie == "session" and asked.token:
        return Leave
    if asked.cookie == "session" and reads:
        return Allow
    if asked.token == KEYS.token and asked.method == "GET" and not used:
        return Enter
    sound = asked.origin in {"", ORIGIN} and asked.form == "form"
    post = asked.method == "POST" and asked.cookie == "session" and not asked.token
    return Allow if post and changes and sound else Deny


def test_z4_every_combination_is_answered_as_the_rule_says() -> None:
    seen: set[type[Verdict]] = set()
    for method, path, host, origin, cookie, token, form, changes, used in product(
        ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"),
        ("/", "/run/x", "/static/perago.css", "/staticky"),
        (HOST, "evil.example:80", "", "127.0.0.1"),
        ("", ORIGIN, "http://evil.example", "null"),
        ("", "session", "wrong"),
        ("", "token", "wrong"),
        ("", "form", "wrong"),
        (True, False),
        (True, False),
    ):
        asked = Asked(method, path, host, origin, cookie, token, form)
        verdict = judge(asked, rules(changes=changes), token_used=used)
        assert type(verdict) is expected(asked, changes=changes, used=used), asked
        seen.add(type(verdict))
    assert seen == {Allow, Enter, Leave, Deny}


def test_z4_no_secret_is_in_a_refusal() -> None:
    said = judge(Asked("GET", "/", HOST, cookie="x"), rules(changes=False), token_used=False)
    assert isinstance(said, Deny)
    assert not any(key in said.why for key in ("token", "session", "form"))


def test_z4_an_empty_secret_is_never_right() -> None:
    assert not same("", "")
    assert same("a", "a")
    assert not same("é", "e")


def test_z4_nothing_inline_and_nothing_of_others_is_run() -> None:
    policy = HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "*" not in policy
    assert HEADERS["X-Content-Type-Options"] == "nosniff"


ANY = "0.0.0.0"  # noqa: S104 - what is to be refused
PROXY = "https://data.example.com"


@pytest.mark.parametrize("host", ["192.0.2.1", "data.example.com", "2001:db8::1"])
def test_z4_beyond_this_machine_only_with_tls_or_a_proxy(host: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="without TLS"):
        check(Serving(host))
    with pytest.raises(UsageError, match="has no TLS"):
        check(Serving(host, proxy="http://data.example.com"))
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    for file in (key, certificate):
        file.touch()
    check(Serving(host, certificate=certificate, key=key))
    check(Serving(host, proxy=PROXY))


@pytest.mark.parametrize("host", [ANY, "::"])
def test_z4_all_addresses_need_the_name_that_people_type(host: str) -> None:
    with pytest.raises(UsageError, match="not a name that people type"):
        check(Serving(host))
    check(Serving(host, proxy=PROXY))


def test_a_proxy_on_this_machine_may_be_without_tls() -> None:
    assert check(Serving(proxy="HTTP://Localhost:8080/")).proxy == "http://localhost:8080"


@pytest.mark.parametrize(
    ("serving", "says"),
    [
        (Serving(port=70000), "is not a port"),
        (Serving(port=-1), "is not a port"),
        (Serving(certificate=Path("x")), "belong together"),
        (Serving(key=Path("x")), "belong together"),
        (Serving(certificate=Path("/absent"), key=Path("/absent")), "there is no file"),
        (Serving(proxy="data.example.com"), "is not an address"),
        (Serving(proxy="ftp://data.example.com"), "is not an address"),
        (Serving(proxy="https://data.example.com/perago"), "is not an address"),
    ],
)
def test_what_cannot_be_served_is_one_sentence(serving: Serving, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        check(serving)


def test_z4_hosts_and_origins_are_those_that_people_type() -> None:
    assert is_loopback("::1")
    local = rules_of(Serving(), 8000, KEYS)
    assert local.hosts == {"127.0.0.1:8000", "localhost:8000"}
    assert local.origins == {"http://127.0.0.1:8000", "http://localhost:8000"}
    assert "[::1]:8000" in rules_of(Serving("::1"), 8000, KEYS).hosts
    behind = rules_of(check(Serving(ANY, proxy="https://Data.example.com/")), 8000, KEYS)
    assert "data.example.com" in behind.hosts
    assert "https://data.example.com" in behind.origins


@pytest.mark.parametrize(
    ("serving", "port", "host"),
    [
        (
            Serving("Data.Example.com", certificate=Path("a"), key=Path("b")),
            443,
            "data.example.com",
        ),
        (Serving("data.example.com", proxy=f"{PROXY}:443"), 8000, "data.example.com"),
        (Serving(), 80, "localhost"),
        (Serving("0:0:0:0:0:0:0:1"), 8000, "[::1]:8000"),
        (Serving("LOCALHOST"), 8000, "localhost:8000"),
    ],
)
def test_z4_hosts_are_written_as_browsers_send_them(serving: Serving, port: int, host: str) -> None:
    assert host in rules_of(serving, port, KEYS).hosts


def test_keys_differ_from_start_to_start() -> None:
    drawn = [key for keys in (new_keys(), new_keys()) for key in (keys.token, keys.session)]
    assert len(set(drawn)) == 4
    assert all(len(key) >= 43 for key in drawn)
