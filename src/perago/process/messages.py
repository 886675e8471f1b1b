"""What travels between an executor process and its owner: plain JSON, checked where it arrives.

An executor runs code of others. Whatever comes from it is data: nothing of it is called, made or
imported here, and what is not a message is an error that ends that executor and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, get_args

from perago import errors
from perago.errors import PeragoError, RuntimeConfigError
from perago.protocol import plain
from perago.protocol.events import cut
from perago.protocol.kinds import FenceKind
from perago.protocol.outcome import Outcome
from perago.protocol.values import Attempt, Claim, Phase, Status

MOST_BYTES: Final = 256 << 20
"""The longest message; the length of one that is garbage is nearly always longer."""
_MOST_BODY_BYTES: Final = 32 << 20
_dumps, _loads = json.dumps, json.loads
"""Bound here: a body may put something else in their place."""
_FEW: Final = 200


class BadMessageError(Exception):
    """What came is not a message."""


# --- from child to parent -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ready:
    """The work is made; claims may come."""


@dataclass(frozen=True, slots=True)
class StartFailure:
    """The work could not be made."""

    error: PeragoError
    detail: str


@dataclass(frozen=True, slots=True)
class WorkMessages:
    """Messages of the work; ``bodies`` were written as JSON where they were said."""

    execution_id: str
    bodies: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class ReceivedMessages:
    """The same on the other side."""

    execution_id: str
    bodies: tuple[Mapping[str, object], ...]


@dataclass(frozen=True, slots=True)
class Alive:
    """A claim is being run, and Python still gets its turns."""


@dataclass(frozen=True, slots=True)
class Done:
    """A claim has been run."""

    execution_id: str
    outcome: Outcome
    last: bool = False
    """Whether the executor can take no other claim, and wants to be replaced."""


# --- from parent to child: a Claim, or this -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cancel:
    """This execution is no longer wanted."""

    execution_id: str


Message = Ready | StartFailure | WorkMessages | Alive | Done | Cancel | Claim
Received = Ready | StartFailure | ReceivedMessages | Alive | Done | Cancel | Claim


def encode(message: Message) -> bytes:
    """Write a message; ``ValueError`` for a claim or an outcome that is not plain JSON."""
    if isinstance(message, WorkMessages):
        head = _dumps(["said", message.execution_id])[:-1].encode()
        return b"%s,[%s]]" % (head, b",".join(message.bodies))
    fields = _fields(message)
    if problem := plain.refuse(fields):
        raise ValueError(f"what is to be sent {problem}")
    return _dumps(fields, default=dict).encode()  # Other mappings than dict.


def _fields(message: Message) -> Sequence[object]:
    match message:
        case Ready() | Alive():
            return [type(message).__name__.lower()]
        case StartFailure(error, detail):
            return ["unready", type(error).__name__, error.message, error.remedy, detail]
        case Done(execution_id, outcome, last):
            told = outcome.status, outcome.output, outcome.reason, outcome.phase, outcome.fence
            return ["done", execution_id, last, told]
        case Cancel(execution_id):
            return ["cancel", execution_id]
        case Claim(attempt, given, execution_id, lease, trace):
            return ["claim", asdict(attempt), given, execution_id, lease, trace]
        case _:
            raise ValueError(f"{type(message).__name__} is not a message")


def body_of(body: Mapping[str, object]) -> bytes:
    """Write what the work says; what JSON has no word for is told as text, or not at all."""
    try:
        written = _dumps(body, default=str).encode()
        if len(written) > _MOST_BODY_BYTES:
            written = _dumps({key: _short(value) for key, value in body.items()}).encode()
    except (TypeError, ValueError, RecursionError) as error:
        kept = {key: value for key, value in body.items() if key in _WHO}
        return _dumps({**kept, "unsendable": type(error).__name__}).encode()
    return written


_WHO: Final = frozenset({"event", "execution_id", "status"})


def _short(value: object) -> object:
    if isinstance(value, str):
        return value[: _MOST_BODY_BYTES // 64]
    if isinstance(value, list | tuple):
        return [str(one) for one in cut(value, _FEW)]
    return value if isinstance(value, int | float | None) else str(value)[:1000]


def decode(data: bytes) -> Received:
    """Read a message; ``BadMessageError`` for everything else."""
    try:
        kind, *fields = _loads(data)
        found: Received = _READERS[kind](*fields)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise BadMessageError(f"{type(error).__name__} in {data[:80]!r}") from error
    return found


def _unready(kind: str, message: str, remedy: str, detail: str) -> StartFailure:
    found = getattr(errors, _text(kind), None)
    error: type[PeragoError] = RuntimeConfigError
    if isinstance(found, type) and issubclass(found, PeragoError):
        error = found
    return StartFailure(error(_text(message), remedy=_text(remedy)), _text(detail))


def _heard(execution_id: str, bodies: Any) -> ReceivedMessages:
    return ReceivedMessages(_text(execution_id), tuple(_object(body) for body in bodies))


def _done(execution_id: str, last: object, told: Any) -> Done:
    status, output, reason, phase, fence = told
    if fence is not None and fence not in get_args(FenceKind):
        raise ValueError("no such fence")
    where = None if phase is None else Phase(phase)
    outcome = Outcome(Status(status), _object(output), _text(reason), where, fence)
    return Done(_text(execution_id), outcome, last is True)


def _claim(attempt: Any, given: Any, execution_id: str, lease: Any, trace: Any) -> Claim:
    who = Attempt(**_object(attempt))
    return Claim(who, _object(given), _text(execution_id), float(lease), _object(trace))


_READERS: Final[Mapping[str, Any]] = {
    "ready": Ready,
    "alive": Alive,
    "unready": _unready,
    "said": _heard,
    "done": _done,
    "cancel": lambda execution_id: Cancel(_text(execution_id)),
    "claim": _claim,
}


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("not an object")
    return value
