"""One table: what an answer of lakeFS, or its absence, means (P6, P8, P9)."""

from __future__ import annotations

from enum import Enum

from perago.errors import (
    RESTART,
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


class Call(Enum):
    """What may be done when the answer is lost."""

    READ = "read"
    """Ask again."""
    PRIVATE = "private"
    """A write on the own staging branch: send again."""
    CREATE = "create"
    """Makes a name: sending it again could take another's for ours."""
    PUBLISH = "publish"
    """Moves the target: never sent again."""


AMBIGUOUS = frozenset({408, 499, 500, 502, 503, 504})
RETRYABLE = AMBIGUOUS | {423, 429}
_UNKNOWN_KEY = 401
_REFUSED = 403
_NOT_FOUND = 404
_CONFLICT = 409
_GONE = 410
_LOST_RACE = frozenset({409, 412, 423, 429})


def may_retry(call: Call, status: int | None) -> bool:
    """Return whether the same request may be sent once more; None stands for no answer at all."""
    if call in {Call.CREATE, Call.PUBLISH}:
        return False
    return status is None or status in RETRYABLE


def translate(call: Call, status: int, message: str, what: str) -> PeragoError:
    """Turn a refusal into an error of ours; ``what`` says what was asked."""
    text = f"{what}: lakeFS answered {status}" + (f" ({message})" if message else "")
    if status in {_UNKNOWN_KEY, _REFUSED}:
        asked = what.partition(" ")[0]
        remedy = f"permit the worker's key to {asked}, or unprotect the branch"
        if status == _UNKNOWN_KEY:
            remedy = "check the worker's lakeFS key and its secret"
        return PermissionRefusedError(text, remedy=remedy)
    gone = status == _GONE and call is Call.READ  # Listed, and the block store has it no more.
    if status == _NOT_FOUND or gone:
        where = "the store's blocks" if gone else "the repository, branch and ref"
        return NotFoundError(text, remedy=f"check {where}")
    if call is Call.PUBLISH:
        return _publish(status, message, text)
    if call is Call.CREATE:
        return _create(status, text)
    if status in RETRYABLE:
        return StoreUnavailableError(text, remedy="check the server, then run the task again")
    return StoreError(text, remedy="see the server's log")


def _create(status: int, text: str) -> PeragoError:
    if status == _CONFLICT:
        return AlreadyExistsError(text, remedy="nothing to do: another process made it")
    if status in RETRYABLE:
        return OutcomeUnknownError(text, remedy="run the task again")
    return StoreError(text, remedy="see the server's log")


def _publish(status: int, message: str, text: str) -> PeragoError:
    if status in AMBIGUOUS:
        return OutcomeUnknownError(text, remedy="the target branch shows whether it landed")
    if status in _LOST_RACE:
        return LostRaceError(text, remedy=RESTART)
    if "uncommitted" in message.lower() or "dirty" in message.lower():
        return PublishFenceError(text, remedy="commit or reset them, then run the task again")
    return StoreError(text, remedy="see the server's log")


def unanswered(call: Call, what: str, why: str) -> PeragoError:
    """Build the error for a request that got no answer."""
    text = f"{what}: no answer from lakeFS ({why})"
    if call in {Call.CREATE, Call.PUBLISH}:
        return OutcomeUnknownError(text, remedy="reading the branch shows whether it was applied")
    return StoreUnavailableError(text, remedy="check LAKECTL_SERVER_ENDPOINT_URL and the server")
