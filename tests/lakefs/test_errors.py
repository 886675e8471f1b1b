"""The error table, exhaustively: every status for every kind of call (P6, P8, P9)."""

from __future__ import annotations

import pytest

from perago.errors import (
    AlreadyExistsError,
    LostRaceError,
    NotFoundError,
    OutcomeUnknownError,
    PeragoError,
    PermissionRefusedError,
    PublishFenceError,
    StoreError,
    StoreUnavailableError,
)
from perago.stores.lakefs.errors import Call, may_retry, translate, unanswered

STATUSES = (300, 302, 304, *range(400, 430), 431, 451, 499, *range(500, 512), 520, 599)
AMBIGUOUS = {408, 499, 500, 502, 503, 504}
BUSY = {423, 429}


def expected(call: Call, status: int) -> type[PeragoError]:  # noqa: PLR0911 - a table
    if status in {401, 403}:
        return PermissionRefusedError
    if status == 404 or (status == 410 and call is Call.READ):
        return NotFoundError
    match call:
        case Call.PUBLISH:
            if status in AMBIGUOUS:
                return OutcomeUnknownError
            return LostRaceError if status in {409, 412, *BUSY} else StoreError
        case Call.CREATE:
            if status in AMBIGUOUS | BUSY:
                return OutcomeUnknownError
            return AlreadyExistsError if status == 409 else StoreError
        case _:
            return StoreUnavailableError if status in AMBIGUOUS | BUSY else StoreError


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("call", Call)
def test_every_status_of_every_call_has_one_meaning(call: Call, status: int) -> None:
    error = translate(call, status, "words of the server", "merge into branch main")
    assert type(error) is expected(call, status)
    assert f"lakeFS answered {status} (words of the server)" in error.message
    assert "merge into branch main" in error.message
    assert error.remedy


@pytest.mark.parametrize("status", [None, *STATUSES])
@pytest.mark.parametrize("call", Call)
def test_p6_only_reads_and_private_writes_are_sent_again(call: Call, status: int | None) -> None:
    again = call in {Call.READ, Call.PRIVATE} and (status is None or status in AMBIGUOUS | BUSY)
    assert may_retry(call, status) is again


@pytest.mark.parametrize("call", [Call.PUBLISH, Call.CREATE])
def test_p6_a_publish_call_is_never_sent_again_whatever_was_said(call: Call) -> None:
    assert not any(may_retry(call, status) for status in (None, *range(100, 1000)))


@pytest.mark.parametrize("call", Call)
def test_p6_no_answer_is_unknown_where_something_visible_may_have_happened(call: Call) -> None:
    error = unanswered(call, "merge", "ReadTimeoutError")
    unknown = call in {Call.CREATE, Call.PUBLISH}
    assert type(error) is (OutcomeUnknownError if unknown else StoreUnavailableError)
    assert "no answer from lakeFS (ReadTimeoutError)" in error.message
    assert error.remedy


@pytest.mark.parametrize("message", ["uncommitted changes found", "Dirty branch"])
def test_p4_a_dirty_target_is_a_fence_for_publish_calls_only(message: str) -> None:
    for call in Call:
        error = translate(call, 400, message, "merge")
        assert type(error) is (PublishFenceError if call is Call.PUBLISH else StoreError)


@pytest.mark.parametrize("what", ["merge into branch main", "hard-reset branch main", "read x"])
def test_p9_a_refusal_names_the_missing_permission(what: str) -> None:
    error = translate(Call.PUBLISH, 403, "", what)
    assert error.remedy.startswith(f"permit the worker's key to {what.split(maxsplit=1)[0]},")


@pytest.mark.parametrize("call", Call)
def test_an_unknown_key_is_told_from_a_missing_permission(call: Call) -> None:
    assert "check the worker's lakeFS key" in translate(call, 401, "", "read").remedy


def test_a_server_without_words_leaves_no_empty_brackets() -> None:
    assert translate(Call.READ, 500, "", "read").message == "read: lakeFS answered 500"
