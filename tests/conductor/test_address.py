"""Base URL with and without ``/api``, and one sentence for a bad one (W7)."""

from __future__ import annotations

import pytest

from perago.brokers.conductor.address import root_of
from perago.errors import NotFoundError, RuntimeConfigError
from perago.transfer.wire import path_of


@pytest.mark.parametrize(
    ("url", "root"),
    [
        ("http://host:8080", "http://host:8080"),
        ("http://host:8080/", "http://host:8080"),
        ("http://host:8080/api", "http://host:8080"),
        ("http://host:8080/api/", "http://host:8080"),
        ("  https://host/conductor/api ", "https://host/conductor"),
        ("http://[::1]:8080/api", "http://[::1]:8080"),
        ("http://host/rapid", "http://host/rapid"),
    ],
)
def test_addresses_that_mean_the_same(url: str, root: str) -> None:
    assert root_of(url) == root


@pytest.mark.parametrize(
    "url",
    [
        *("", "host:8080", "ftp://host/api", "http://", "http:///api", "http://host:port"),
        *("http://host:99999", "http://host:0", "http://host/api?x=1", "http://host/#top", "/api"),
    ],
)
def test_what_is_no_address_is_one_sentence(url: str) -> None:
    with pytest.raises(RuntimeConfigError, match="CONDUCTOR_SERVER_URL"):
        root_of(url)


def test_v8_a_password_in_the_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(RuntimeConfigError) as told:
        root_of("http://user:CANARY@host/api")
    assert "CANARY" not in str(told.value)
    assert "host/api" in str(told.value)


def test_names_are_quoted_whole() -> None:
    assert path_of("tasks", "a/b c?d#e%") == "/tasks/a%2Fb%20c%3Fd%23e%25"


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_names_that_would_lead_elsewhere_are_refused(name: str) -> None:
    with pytest.raises(NotFoundError):
        path_of("tasks", name)
