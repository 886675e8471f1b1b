"""PERAGO_LEDGER: what is read, what is refused, and that no password is ever shown (V8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from perago.app.local import ledger_of
from perago.errors import RuntimeConfigError
from perago.observe.secrets import HIDDEN, Secrets
from perago.settings import LedgerSettings, load_settings


def read(text: str, directory: Path = Path("/nowhere")) -> LedgerSettings | None:
    return load_settings({"PERAGO_LEDGER": text}, directory).ledger


def test_without_an_address_there_is_no_ledger() -> None:
    assert read("") is None
    assert ledger_of(load_settings({}, Path("/nowhere"))) is None


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("sqlite:///var/lib/ledger.sqlite", "/var/lib/ledger.sqlite"),
        ("sqlite:///with%20space/l.sqlite", "/with space/l.sqlite"),
        ("sqlite:////var/l.sqlite", "//var/l.sqlite"),
    ],
)
def test_a_file_is_named_from_the_root_on(text: str, path: str) -> None:
    found = read(text)
    assert found
    assert (found.kind, found.address) == ("sqlite", path)


@pytest.mark.parametrize(
    ("text", "shown", "secrets"),
    [
        ("postgresql://u:s3cret@h:5432/d", "postgresql://h:5432/d", ("s3cret",)),
        ("postgres://u:p%40ssw0rd@h/d", "postgresql://h/d", ("p@ssw0rd",)),
        ("postgresql://h/d?user=u&password=s3cret", "postgresql://h/d", ("s3cret",)),
        ("postgresql://u:s3cret@[::1]:5432/d", "postgresql://[::1]:5432/d", ("s3cret",)),
        ("postgresql:///d?host=/run", "postgresql:///d", ()),
    ],
)
def test_v8_only_the_place_of_a_server_is_shown(
    text: str, shown: str, secrets: tuple[str, ...]
) -> None:
    settings = load_settings({"PERAGO_LEDGER": text}, Path("/nowhere"))
    found = settings.ledger
    assert found
    assert (found.kind, found.shown, found.secrets) == ("postgresql", shown, secrets)
    for secret in secrets:
        assert secret not in repr(settings)
        assert secret not in shown
        assert Secrets.of(settings).hide(f"to {secret}!") == f"to {HIDDEN}!"


@pytest.mark.parametrize(
    "text",
    [
        "mysql://u:canary@h/d",
        "sqlite://canary.sqlite",
        "sqlite:canary.sqlite",
        "canary",
        "postgresql://u:canary@[::1/d",
        "postgresql://u:canary@h:port/d",
    ],
)
def test_v8_what_cannot_be_read_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(RuntimeConfigError) as told:
        read(text)
    assert "PERAGO_LEDGER" in str(told.value)
    assert "canary" not in str(told.value)
