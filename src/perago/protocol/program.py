"""Programs as bodies: how one is declared, what its events say, what its end means (Q3 to Q6)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from perago.errors import PeragoError, TaskFailed, TaskTerminalError
from perago.protocol.reading import read_json
from perago.protocol.values import Claim

TERMINAL_EXIT: Final = 65
"""The exit code of a program that can never succeed on this input; ``EX_DATAERR`` of old."""
LEVELS: Final = ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True)
class Program:
    """How a program is started; nothing of the worker's environment is handed on but ``env``."""

    command: tuple[str, ...]
    env: tuple[str, ...] = ()
    serve: bool = False
    """Whether it is started once and then does one attempt after the other (Q8)."""


def program_facts(claim: Claim, deadline: float) -> dict[str, object]:
    """Say which attempt it is, as the file ``PERAGO_ATTEMPT`` does (Q3)."""
    attempt, workspace = claim.attempt, claim.input.get("workspace")
    return {
        "workflow_instance_id": attempt.workflow_instance_id,
        "task_id": attempt.task_id,
        "task": attempt.task_def_name,
        "step": attempt.reference_task_name,
        "retry_count": attempt.retry_count,
        "execution_id": claim.execution_id,
        "input_ref": workspace.get("ref") if isinstance(workspace, Mapping) else None,
        "deadline": deadline if math.isfinite(deadline) else None,
    }


# --- how it ends ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """How a program ended."""

    code: int
    """Its exit code, or the negative number of the signal that ended it."""
    how: str
    """The same in words."""
    result: bytes | None = None
    """What it wrote where its result belongs; None when it wrote nothing."""
    last_words: str = ""
    """The last line of its standard error."""


def result_of(end: ProgramEnd) -> dict[str, Any]:
    """Return what a program returned, or raise what its end means (Q4, Q5)."""
    if end.code:
        raise failure_of(end)
    if end.result is None:
        return {}
    try:
        found = read_json(end.result)
    except ValueError as error:
        raise _misspoken(f"is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise _misspoken(f"is a {type(found).__name__}, not an object")
    return found


def failure_of(end: ProgramEnd) -> PeragoError:
    """Say why a program failed: in its own words, or in the last ones it has left (Q5)."""
    said = _error_in(end.result)
    if said is not None:
        text, terminal = said
        return failed_as(text, terminal=end.code == TERMINAL_EXIT if terminal is None else terminal)
    text = f"the program {end.how}"
    words = end.last_words.strip()
    text += f": {words}" if words else " and wrote nothing to standard error"
    return failed_as(text, terminal=end.code == TERMINAL_EXIT)


def failed_as(text: str, *, terminal: bool) -> PeragoError:
    """Make the error that a program's failure is."""
    return TaskTerminalError(text) if terminal else TaskFailed(text)


def _error_in(result: bytes | None) -> tuple[str, bool | None] | None:
    """Read ``{"error": ..., "terminal": ...}``; None for everything else."""
    if result is None:
        return None
    try:
        found = read_json(result)
    except ValueError:
        return None
    if not isinstance(found, dict) or not isinstance(found.get("error"), str):
        return None
    terminal = found.get("terminal")
    return found["error"], terminal if isinstance(terminal, bool) else None


def _misspoken(problem: str) -> TaskFailed:
    return TaskFailed(
        f"what the program wrote as its result {problem}",
        remedy="write one JSON object to the file that PERAGO_RESULT names, or nothing",
    )


# --- what it says on the way (Q6) -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """So much of so much is done."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class MetricEvent:
    """A number for the worker's metrics."""

    kind: str
    name: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LogEvent:
    """A line for the task log."""

    level: str
    message: str


ProgramEvent = ProgressEvent | MetricEvent | LogEvent


def event_of(found: Mapping[str, Any]) -> ProgramEvent | None:
    """Read an event; None for a type this version does not know, ``ValueError`` for a bad one."""
    match found.get("type"):
        case "progress":
            total = _number(found, "total")
            done = min(max(_number(found, "done"), 0.0), max(total, 0.0))
            return ProgressEvent(int(done), int(total))
        case "metric":
            kind = found.get("kind", "gauge")
            if kind not in {"gauge", "histogram"}:
                raise ValueError("kind is neither gauge nor histogram")
            labels = found.get("labels", {})
            if not isinstance(labels, dict):
                raise ValueError("labels is not an object")
            named = {str(key): str(value) for key, value in labels.items()}
            return MetricEvent(kind, _text(found, "name"), _number(found, "value"), named)
        case "log":
            level = found.get("level", "info")
            if level not in LEVELS:
                raise ValueError(f"level is none of {', '.join(LEVELS)}")
            return LogEvent(level, _text(found, "message"))
        case str():
            return None
        case _:
            raise ValueError("it has no type")


def _number(found: Mapping[str, Any], name: str) -> float:
    value = found.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} is too large a number")
    return number


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} is not a text")
    return value
