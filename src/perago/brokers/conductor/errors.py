"""One table: what an answer of Conductor, or its absence, means."""

from __future__ import annotations

from enum import Enum

from perago.errors import (
    BrokerError,
    BrokerUnavailableError,
    NotFoundError,
    PeragoError,
    PermissionRefusedError,
)


class Call(Enum):
    """What may be done when the answer is lost."""

    READ = "read"
    """Ask again."""
    SAME = "same"
    """A write that changes nothing the second time: send again."""
    ONCE = "once"
    """Never sent again here: a second poll takes more tasks, a second report may come too late."""


UNAVAILABLE = frozenset({408, 423, 425, 429, 499, 500, 502, 503, 504})
UNKNOWN_KEY = 401
REFUSED = 403
NOT_FOUND = 404
_TOO_LARGE = 413


def may_retry(call: Call, status: int | None) -> bool:
    """Return whether the same request may be sent once more; None stands for no answer at all."""
    return call is not Call.ONCE and (status is None or status in UNAVAILABLE)


def translate(status: int, message: str, what: str) -> PeragoError:
    """Turn a refusal into an error of ours; ``what`` says what was asked."""
    text = f"{what}: Conductor answered {status}" + (f" ({message})" if message else "")
    if status == UNKNOWN_KEY:
        return PermissionRefusedError(
            text, remedy="check CONDUCTOR_AUTH_KEY and CONDUCTOR_AUTH_SECRET"
        )
    if status == REFUSED:
        asked = what.partition(" ")[0]
        return PermissionRefusedError(text, remedy=f"permit the worker's key to {asked}")
    if status == NOT_FOUND:
        return NotFoundError(text, remedy="check the name, and CONDUCTOR_SERVER_URL")
    if status in UNAVAILABLE:
        return BrokerUnavailableError(text, remedy="check the server, then try again")
    if status == _TOO_LARGE:
        return BrokerError(text, remedy="send less: keep data in the workspace")
    return BrokerError(text, remedy="see the server's log")


def unanswered(what: str, why: str) -> PeragoError:
    """Build the error for a request that got no answer; it may have been applied."""
    return BrokerUnavailableError(
        f"{what}: no answer from Conductor ({why})",
        remedy="check CONDUCTOR_SERVER_URL and the server",
    )
