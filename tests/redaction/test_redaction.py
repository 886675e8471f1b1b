"""V8: a key that is known is hidden, however it is spelled; what is not a key stays."""

from __future__ import annotations

import base64
import pickle
import random
import string
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perago import redaction
from perago.protocol.outcome import Outcome, classify
from perago.protocol.values import Phase, Status
from perago.redaction import HIDDEN, Redactor, hidden_outcome, keep_secret, refuse
from perago.settings import (
    ConductorSettings,
    LakeFSSettings,
    LedgerSettings,
    SparkSettings,
    TelemetrySettings,
    keys_lent,
    keys_withheld,
)
from tests import canary

KEYS = [
    "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
    "a\"b\\c'd/é1 +&<>x",
    "Pa55/word",
    "s3cret",
    "AAAAAAAA1",
    "!!@@##$$%%1",
    "日本語のパスワードです1",
    "ends with a slash 1/",
]
SETTINGS: dict[str, Callable[[str], object]] = {
    "lakefs": lambda key: LakeFSSettings("http://h", "AKIAEXAMPLE0KEY", key),
    "conductor": lambda key: ConductorSettings("http://h", "conductor-key-1", key),
    "ledger": lambda key: LedgerSettings("postgresql", "postgresql://h/d", "address", (key,)),
    "telemetry": lambda key: TelemetrySettings({"OTEL_EXPORTER_OTLP_HEADERS": f"k={key}"}),
    "spark conf": lambda key: SparkSettings(conf={"spark.hadoop.fs.s3a.secret.key": key}),
    "spark token": lambda key: SparkSettings(master=f"sc://h:15002/;token={key}"),
}


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Redactor:
    """Give this test a process that knows no key."""
    fresh = Redactor()
    monkeypatch.setattr(redaction, "KNOWN", fresh)
    return fresh


@pytest.mark.parametrize("key", KEYS)
def test_v8_a_key_is_hidden_in_every_spelling(key: str) -> None:
    hider = Redactor([key])
    for name, text in canary.spellings(key).items():
        hidden = hider.hide(f"before {text} behind")
        assert HIDDEN in hidden, name
        assert hidden.startswith("before ")
        assert hidden.endswith(" behind")
    assert canary.leaks(key, [("what is left", hider.hide(canary.chatter(key)).encode())]) == []


@pytest.mark.parametrize("lead", range(80))
def test_v8_base64_that_is_broken_into_lines_is_hidden(lead: int) -> None:
    text = base64.encodebytes(b"x" * lead + KEYS[0].encode() + b"behind it").decode()
    hidden = Redactor([KEYS[0]]).hide(text)
    left = "".join(hidden.replace(HIDDEN, "").split())
    assert canary.leaks(KEYS[0], [("what is left", left.encode())]) == []


@given(st.text(string.ascii_letters + string.digits + "+/=_-%&", min_size=12, max_size=60))
def test_v8_any_key_is_hidden_or_said_to_be_too_plain(key: str) -> None:
    if refuse(key) is None:
        assert Redactor([key]).hide(f"<{key}>") == f"<{HIDDEN}>"
    else:
        assert Redactor([key]).hide(f"<{key}>") == f"<{key}>"


@given(st.text(max_size=300))
def test_what_holds_no_key_stays_as_it_is(text: str) -> None:
    hider = Redactor(KEYS)
    if not any(key in text for key in KEYS):
        assert hider.hide(text) == text


def test_hiding_twice_is_hiding_once() -> None:
    hider = Redactor(KEYS)
    once = hider.hide(" ".join(map(canary.chatter, KEYS)))
    assert hider.hide(once) == once


def test_the_longer_of_two_keys_goes_whole() -> None:
    assert Redactor(["s3cret", "s3cret-and-more"]).hide("s3cret-and-more") == HIDDEN


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("a", "has fewer than 6 characters"),
        ("perago", "could be a word"),
        ("Postgres", "could be a word"),
        ("perago-staging", "could be a word"),
        ("20241116", "could be a number"),
        ("2024-11-16", "could be a number"),
    ],
)
def test_a_key_that_could_be_a_word_is_not_hidden_but_refused_by_name(key: str, why: str) -> None:
    assert refuse(key) == why
    assert Redactor([key]).hide(f"on {key} at a") == f"on {key} at a"


def test_v8_values_of_json_are_hidden_in_texts_names_and_numbers() -> None:
    hider = Redactor(["123456789a", "4711471147114711471147"])
    given = {"a": ["123456789a", 1, None, True], "123456789a": 4711471147114711471147, "n": 1.5}
    assert hider.plain(given) == {"a": [HIDDEN, 1, None, True], HIDDEN: HIDDEN, "n": 1.5}


@pytest.mark.parametrize("name", ["Signature", "Credential", "Security-Token"])
def test_v8_a_presigned_address_loses_what_lets_people_in(name: str) -> None:
    url = f"https://s3/bucket/key?X-Amz-Date=2026&X-Amz-{name}=abc%2F123def&partNumber=1"
    assert Redactor().hide(url) == url.replace("abc%2F123def", HIDDEN)


@pytest.mark.parametrize("kind", SETTINGS)
@pytest.mark.usefixtures("known")
def test_v8_settings_make_their_key_known_wherever_they_arrive(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    key = "k3y" + "".join(random.choices(string.ascii_letters, k=30))
    made = SETTINGS[kind](key)
    assert redaction.hide(f"<{key}>") == f"<{HIDDEN}>"
    assert key not in repr(made) or kind.startswith("spark")
    packed = pickle.dumps(made)
    monkeypatch.setattr(redaction, "KNOWN", Redactor())  # As another process.
    assert redaction.hide(key) == key
    assert pickle.loads(packed) == made  # noqa: S301 - our own
    assert redaction.hide(f"<{key}>") == f"<{HIDDEN}>"


def test_v8_tokens_that_were_replaced_are_forgotten_in_the_end(known: Redactor) -> None:
    keep_secret("k3y-that-stays")
    for number in range(100):
        known.add_token(f"t0ken-{number}-of-a-server")
    assert redaction.hide("t0ken-99-of-a-server k3y-that-stays") == f"{HIDDEN} {HIDDEN}"
    assert len(known._keys) < 20  # noqa: SLF001 - what it costs


@pytest.mark.parametrize("limit", range(1, 60))
def test_r1_v8_a_key_is_hidden_before_the_reason_is_cut(limit: int) -> None:
    key = KEYS[0]
    error = ValueError(f"no access with {key} at all")
    reason = classify(Phase.BODY, error, reason_limit=limit, hide=Redactor([key]).hide).reason
    assert canary.leaks(key, [("reason", reason.encode())]) == []
    assert len(reason) <= limit


def test_the_workspace_of_an_output_goes_back_as_it_came(known: Redactor) -> None:
    known.add("br4nch-name")
    place = {"repository": "r", "branch": "br4nch-name", "ref": "c"}
    outcome = Outcome(
        Status.COMPLETED, {"workspace": place, "result": {"x": "br4nch-name"}}, "br4nch-name"
    )
    told = hidden_outcome(outcome)
    assert told.output == {"workspace": place, "result": {"x": HIDDEN}}
    assert told.reason == HIDDEN


def test_a_text_is_not_cut_inside_a_key() -> None:
    hider = Redactor([KEYS[0]])
    text = f"{'x' * 50}{KEYS[0]}{'y' * 50}"
    for at in range(len(text)):
        cut = hider.safe_cut(text, at)
        parts = hider.hide(text[:cut]), hider.hide(text[cut:])
        assert canary.leaks(KEYS[0], [("parts", "|".join(parts).encode())]) == []
        assert cut <= at


def test_the_keys_leave_an_environment_and_come_back() -> None:
    kept = {"PATH": "/bin", "LAKECTL_SERVER_ENDPOINT_URL": "http://h", "PERAGO_HOME": "x"}
    keys = {
        "LAKECTL_CREDENTIALS_ACCESS_KEY_ID": "id",
        "LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY": "secret",
        "CONDUCTOR_AUTH_KEY": "key",
        "CONDUCTOR_AUTH_SECRET": "secret",
        "PERAGO_LEDGER": "postgresql://u:p@h/d",
        "PERAGO_SPARK_CONF": "spark.authenticate.secret=x",
        "OTEL_EXPORTER_OTLP_HEADERS": "a=b",
        "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "a=b",
    }
    environ = {**kept, **keys}
    with keys_withheld(environ) as taken:
        assert environ == kept
        assert taken == keys
        with keys_lent(environ, {"OTEL_EXPORTER_OTLP_HEADERS": "a=b"}):
            assert environ == kept | {"OTEL_EXPORTER_OTLP_HEADERS": "a=b"}
        assert environ == kept
    assert environ == {**kept, **keys}
