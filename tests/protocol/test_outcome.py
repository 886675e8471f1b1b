"""How an attempt ends: the table of section 10, T3, T4, R1."""

from __future__ import annotations

import pytest

from perago import errors
from perago.errors import PeragoError, StoreUnavailableError, WorkspaceError
from perago.protocol.outcome import Outcome, classify, describe, is_terminal, shorten
from perago.protocol.values import Phase, Status

FAILED, TERMINAL = Status.FAILED, Status.FAILED_WITH_TERMINAL_ERROR
ATTEMPT = [phase for phase in Phase if phase is not Phase.REPORT]
KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, PeragoError)
]


class Unspeakable(Exception):  # noqa: N818 - named after what it is
    """An error whose text cannot be had."""

    def __str__(self) -> str:
        raise ValueError("no")


class AuthorsTerminal(errors.TaskTerminalError):
    """An author's own kind of terminal error."""


TABLE: list[tuple[Phase, BaseException, Status]] = [
    (Phase.INPUT, errors.TaskInputError("x"), FAILED),
    (Phase.INPUT, errors.TaskParamsError("x"), TERMINAL),
    (Phase.INPUT, errors.NotFoundError("x"), FAILED),
    (Phase.ATTEMPT_DIR, errors.WorkspaceError("x"), FAILED),
    (Phase.DOWNLOAD, errors.UnsafePathError("x"), FAILED),
    (Phase.DOWNLOAD, errors.CorruptObjectError("x"), FAILED),
    (Phase.DOWNLOAD, errors.StoreUnavailableError("x"), FAILED),
    (Phase.PRE, errors.PreGuardrailViolation("x"), TERMINAL),
    (Phase.PRE, ZeroDivisionError("x"), FAILED),
    (Phase.PRE, errors.UnpublishableFileError("x"), FAILED),
    (Phase.BODY, errors.TaskFailed("x"), FAILED),
    (Phase.BODY, errors.TaskTerminalError("x"), TERMINAL),
    (Phase.BODY, AuthorsTerminal("x"), TERMINAL),
    (Phase.BODY, errors.GuardrailViolation("x"), FAILED),
    (Phase.BODY, errors.PreGuardrailViolation("x"), FAILED),
    (Phase.BODY, errors.TaskParamsError("x"), FAILED),
    (Phase.BODY, ValueError("x"), FAILED),
    (Phase.BODY, SystemExit(0), FAILED),
    (Phase.BODY, MemoryError(), FAILED),
    (Phase.BODY, RecursionError("x"), FAILED),
    (Phase.RESULT, errors.ResultError("x"), FAILED),
    (Phase.POST, errors.PostGuardrailViolation("x"), FAILED),
    (Phase.POST, errors.PreGuardrailViolation("x"), FAILED),
    (Phase.POST, KeyError("x"), FAILED),
    (Phase.DIFF, errors.UnpublishableFileError("x"), FAILED),
    (Phase.FENCE_ONE, errors.StaleAttemptError("x"), FAILED),
    (Phase.FENCE_ONE, errors.BrokerUnavailableError("x"), FAILED),
    (Phase.STAGE, errors.AlreadyExistsError("x"), FAILED),
    (Phase.STAGE, errors.OutcomeUnknownError("x"), FAILED),
    (Phase.STAGE, OSError(28, "No space left on device"), FAILED),
    (Phase.FENCE_TWO, errors.StaleAttemptError("x"), FAILED),
    (Phase.PUBLISH, errors.PublishFenceError("x"), FAILED),
    (Phase.PUBLISH, errors.LostRaceError("x"), FAILED),
    (Phase.PUBLISH, errors.MergeConflictError("x"), FAILED),
    (Phase.PUBLISH, errors.OutcomeUnknownError("x"), FAILED),
    (Phase.PUBLISH, errors.PermissionRefusedError("x"), FAILED),
]


@pytest.mark.parametrize(
    ("phase", "error", "status"),
    [pytest.param(*row, id=f"{row[0]}-{type(row[1]).__name__}") for row in TABLE],
)
def test_section_10_every_failure_has_its_status(
    phase: Phase, error: BaseException, status: Status
) -> None:
    outcome = classify(phase, error, reason_limit=500, hide=str)
    assert outcome.status is status
    assert outcome.phase is phase
    assert outcome.output == {}
    assert not outcome.completed
    assert outcome.reason.startswith(f"{phase}: {type(error).__name__}")


@pytest.mark.parametrize("phase", ATTEMPT)
def test_section_10_only_what_says_so_is_terminal(phase: Phase) -> None:
    """No phase turns an ordinary error into a terminal one, whatever its class."""
    terminal = {kind for kind in KINDS if is_terminal(phase, kind("x"))}
    expected: set[type[PeragoError]] = {errors.TaskTerminalError}
    if phase is Phase.PRE:
        expected.add(errors.PreGuardrailViolation)
    if phase is Phase.INPUT:
        expected.add(errors.TaskParamsError)
    assert terminal == expected
    assert not is_terminal(phase, RuntimeError("x"))


def test_r1_the_reason_says_phase_cause_and_remedy() -> None:
    error = errors.PublishFenceError("branch 'main' is fenced", remedy="start a new workflow")
    outcome = classify(Phase.PUBLISH, error, reason_limit=500, hide=str)
    assert outcome.reason == (
        "publish: PublishFenceError: branch 'main' is fenced; start a new workflow"
    )


@pytest.mark.parametrize("limit", [0, 1, 2, 10, 47, 48, 500])
def test_r1_the_reason_is_cut_to_the_limit_and_says_so(limit: int) -> None:
    error = ValueError("n" * 40)
    full = f"body: ValueError: {'n' * 40}"
    reason = classify(Phase.BODY, error, reason_limit=limit, hide=str).reason
    assert len(reason) <= limit
    assert reason == full if limit >= len(full) else full.startswith(reason.removesuffix("…"))
    if 0 < limit < len(full):
        assert reason.endswith("…")


@pytest.mark.parametrize(
    ("text", "limit", "short"),
    [("abc", 3, "abc"), ("abc", 2, "a…"), ("abc", 1, "…"), ("abc", 0, ""), ("abc", -1, "")],
)
def test_r1_cutting(text: str, limit: int, short: str) -> None:
    assert shorten(text, limit) == short


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError(), "ValueError"),
        (ValueError("  "), "ValueError"),
        (KeyError("k"), "KeyError: 'k'"),
        (errors.TaskFailed(), "TaskFailed"),
        (errors.TaskFailed("bad", remedy="fix it"), "TaskFailed: bad; fix it"),
        (Unspeakable(), "Unspeakable"),
    ],
    ids=repr,
)
def test_r1_a_reason_is_never_empty_and_names_the_type(error: BaseException, text: str) -> None:
    assert describe(error) == text


def test_only_completed_is_completed() -> None:
    assert [status for status in Status if Outcome(status).completed] == [Status.COMPLETED]


def test_the_line_of_the_author_stays_when_a_reason_is_cut() -> None:
    error = ValueError("x" * 500)
    reason = classify(Phase.BODY, error, reason_limit=60, hide=str, line="tasks.py line 3").reason
    assert len(reason) == 60
    assert reason.endswith("… (tasks.py line 3)")
    tiny = classify(Phase.BODY, error, reason_limit=10, hide=str, line="tasks.py line 3").reason
    assert tiny == "body: Val…"


@pytest.mark.parametrize(
    ("phase", "error", "unexpected"),
    [
        (Phase.DOWNLOAD, RuntimeError("patched by a body"), True),
        (Phase.INPUT, RecursionError(), True),
        (Phase.ATTEMPT_DIR, WorkspaceError("cannot be made"), True),
        (Phase.DOWNLOAD, WorkspaceError("an unsafe path"), False),
        (Phase.DOWNLOAD, StoreUnavailableError("away"), False),
        (Phase.PRE, RuntimeError("a guard's bug"), False),
        (Phase.BODY, RuntimeError("a body's bug"), False),
        (Phase.RESULT, TypeError(), False),
        (Phase.POST, RecursionError(), False),
    ],
)
def test_w5_a_failure_that_nothing_explains_may_be_the_process(
    phase: Phase, error: BaseException, unexpected: bool
) -> None:
    outcome = classify(phase, error, reason_limit=500, hide=str)
    assert outcome.unexpected is unexpected


@pytest.mark.parametrize("text", ["a\r\nb", "\x1b[2J", "\x00", "a\u2028b", "\u202eabc"])
def test_v9_a_reason_is_one_line_that_can_be_seen(text: str) -> None:
    reason = classify(Phase.BODY, RuntimeError(f"x{text}y"), reason_limit=500, hide=str).reason
    assert reason.isprintable()


def test_p9_the_remedy_of_a_fence_names_the_workflow_to_restart() -> None:
    error = errors.PublishFenceError("branch 'main' is fenced", remedy=errors.RESTART)
    ended = classify(Phase.PUBLISH, error, reason_limit=500, hide=str, workflow_id="w-17")
    assert ended.reason.endswith("from the current head of the branch: perago restart w-17")
