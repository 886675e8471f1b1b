"""The one table of what Conductor's answers mean."""

from __future__ import annotations

import pytest

from perago.brokers.conductor.errors import Call, may_retry, translate, unanswered
from perago.errors import (
    BrokerError,
    BrokerUnavailableError,
    NotFoundError,
    PeragoError,
    PermissionRefusedError,
)

MEANINGS: dict[int, type[PeragoError]] = {
    301: BrokerError,
    400: BrokerError,
    401: PermissionRefusedError,
    403: PermissionRefusedError,
    404: NotFoundError,
    405: BrokerError,
    408: BrokerUnavailableError,
    409: BrokerError,
    413: BrokerError,
    422: BrokerError,
    423: BrokerUnavailableError,
    425: BrokerUnavailableError,
    429: BrokerUnavailableError,
    499: BrokerUnavailableError,
    500: BrokerUnavailableError,
    501: BrokerError,
    502: BrokerUnavailableError,
    503: BrokerUnavailableError,
    504: BrokerUnavailableError,
}


@pytest.mark.parametrize(("status", "kind"), MEANINGS.items())
def test_every_answer_has_one_meaning_and_a_remedy(status: int, kind: type[PeragoError]) -> None:
    error = translate(status, "its words", "read task t-1")
    assert type(error) is kind
    assert error.message == f"read task t-1: Conductor answered {status} (its words)"
    assert error.remedy


@pytest.mark.parametrize("status", [None, *MEANINGS])
def test_what_may_be_sent_again(status: int | None) -> None:
    repeats = status is None or MEANINGS[status] is BrokerUnavailableError
    assert may_retry(Call.READ, status) is repeats
    assert may_retry(Call.SAME, status) is repeats
    assert not may_retry(Call.ONCE, status)


def test_no_answer_is_not_no() -> None:
    error = unanswered("update task t-1", "ReadTimeoutError")
    assert type(error) is BrokerUnavailableError
    assert "ReadTimeoutError" in error.message


def test_a_missing_permission_is_named() -> None:
    assert "to register" in translate(403, "", "register workflows").remedy
