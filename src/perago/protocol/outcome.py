"""Every way an attempt can end, through one classifier (section 10, R1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from perago.errors import (
    BrokerUnavailableError,
    LostRaceError,
    PeragoError,
    PreGuardrailViolation,
    PublishFenceError,
    StaleAttemptError,
    TaskParamsError,
    WorkspaceError,
    restart_named,
)
from perago.protocol.events import OutcomeDecided
from perago.protocol.kinds import FenceKind
from perago.protocol.printable import printable
from perago.protocol.values import Phase, Status


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is reported to the broker, and what the worker knows besides."""

    status: Status
    output: Mapping[str, object] = field(default_factory=dict)
    reason: str = ""
    phase: Phase | None = None
    fence: FenceKind | None = None
    refused_by: Literal["attempt", "publish"] | None = None
    """The fence that refused it, if one did."""
    unexpected: bool = False
    """Whether it failed where no author's code runs, in a way that nothing outside explains: the
    process itself may be spoiled."""

    @property
    def completed(self) -> bool:
        """Return whether the attempt succeeded."""
        return self.status is Status.COMPLETED

    @property
    def event(self) -> OutcomeDecided:
        """Say that it is certain."""
        return OutcomeDecided(
            status=str(self.status),
            reason=self.reason,
            output=self.output,
            phase=None if self.phase is None else str(self.phase),
            refused_by=self.refused_by,
        )


def classify(
    phase: Phase,
    error: BaseException,
    *,
    reason_limit: int,
    hide: Callable[[str], str],
    line: str = "",
    workflow_id: str = "",
) -> Outcome:
    """Turn a failure into a status and a reason that says phase, cause and remedy.

    ``line`` is the author's line that raised it; it stays when the rest of the reason is cut.
    Keys are hidden before the reason is cut: half a key is not recognised any more (V8).
    """
    where = hide(sendable(f" ({line})")) if line else ""
    limit = reason_limit - len(where) if len(where) < reason_limit else reason_limit
    said = restart_named(describe(error), workflow_id)
    reason = shorten(printable(hide(f"{phase}: {said}")), limit)
    return Outcome(
        status=(Status.FAILED_WITH_TERMINAL_ERROR if is_terminal(phase, error) else Status.FAILED),
        reason=reason + where if limit < reason_limit else reason,
        phase=phase,
        refused_by=refusing_fence(phase, error),
        unexpected=is_unexpected(phase, error),
    )


_ATTEMPT_FENCES = frozenset({Phase.FENCE_ONE, Phase.FENCE_TWO})


def refusing_fence(phase: Phase, error: BaseException) -> Literal["attempt", "publish"] | None:
    """Return the fence that refused an attempt, or None where it failed for another reason."""
    if isinstance(error, PublishFenceError | LostRaceError):
        return "publish"
    # F2: if the broker cannot be asked, the answer is no.
    unasked = isinstance(error, BrokerUnavailableError) and phase in _ATTEMPT_FENCES
    return "attempt" if unasked or isinstance(error, StaleAttemptError) else None


_OF_THE_AUTHOR = frozenset({Phase.PRE, Phase.BODY, Phase.RESULT, Phase.POST})


def is_unexpected(phase: Phase, error: BaseException) -> bool:
    """Return whether the process may be the reason: an author's code can change all of it."""
    if phase in _OF_THE_AUTHOR:
        return False
    if phase is Phase.ATTEMPT_DIR and isinstance(error, WorkspaceError):
        return True
    return not isinstance(error, PeragoError)


def is_terminal(phase: Phase, error: BaseException) -> bool:
    """Return whether a retry cannot help; two kinds of error mean that in one phase only."""
    if isinstance(error, PreGuardrailViolation):
        return phase is Phase.PRE
    if isinstance(error, TaskParamsError):
        return phase is Phase.INPUT
    return isinstance(error, PeragoError) and error.terminal


def describe(error: BaseException) -> str:
    """Name the type and the text of an error; never empty, even when its text cannot be had."""
    try:
        text = str(error).strip()
    except BaseException:  # noqa: BLE001 - an author's __str__ may raise anything
        text = ""
    name = type(error).__name__
    return sendable(f"{name}: {text}" if text else name)


def sendable(text: str) -> str:
    """Spell out what no encoding can carry: halves of a surrogate pair."""
    return text.encode(errors="backslashreplace").decode()


def shorten(text: str, limit: int) -> str:
    """Cut to ``limit`` characters, visibly."""
    if len(text) <= limit:
        return text
    return text[: limit - 1] + "…" if limit > 0 else ""
