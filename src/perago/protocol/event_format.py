"""Events as they are written: a name and facts, in the event log and between processes.

Whoever wrote them, they can be read: a fact that is missing or malformed gets its default, and what
cannot be understood is an :class:`~perago.protocol.events.Unknown`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final

from perago.protocol.events import (
    Adopted,
    Applied,
    BranchCreated,
    Changed,
    Claimed,
    Committed,
    CompletionLost,
    Downloaded,
    Event,
    GuardAsked,
    LeftoversRemoved,
    MetricRecorded,
    Moved,
    NotAdopted,
    OutcomeDecided,
    OutcomeUnknown,
    PhaseBegan,
    PhaseEnded,
    PublicationDecided,
    PublicationVerified,
    SparkStarted,
    SparkStarting,
    Traceback,
    UnknownEvent,
    Uploaded,
    Warned,
)
from perago.protocol.values import Phase

URGENT: Final = frozenset({PhaseBegan(Phase.BODY).title, SparkStarting.NAME})
"""Names of events that travel at once: what follows takes long, or may end the process."""
KINDS: Final[Mapping[str, type[Event]]] = {
    kind.NAME: kind
    for kind in (
        *(Claimed, Downloaded, Changed, BranchCreated, Uploaded, Committed),
        *(PublicationDecided, Applied, PublicationVerified),
        *(SparkStarting, SparkStarted, LeftoversRemoved, GuardAsked, MetricRecorded),
        *(Adopted, NotAdopted, OutcomeUnknown, Warned, Traceback, OutcomeDecided, CompletionLost),
        Moved,
    )
}
_PHASES: Final[Mapping[str, Event]] = {
    event.title: event for phase in Phase for event in (PhaseBegan(phase), PhaseEnded(phase))
}


def read(name: str, facts: Mapping[str, object]) -> Event:
    """Turn what was recorded or sent into an event."""
    found = _PHASES.get(name)
    if isinstance(found, PhaseEnded):
        return PhaseEnded(found.phase, **_fitting(PhaseEnded, facts))
    kind = KINDS.get(name)
    if found is not None or kind is None:
        return found or UnknownEvent(name, facts)
    try:
        return kind(**_fitting(kind, facts))
    except TypeError:  # A fact without a default is missing.
        return UnknownEvent(name, facts)


def _fitting(kind: type[Event], facts: Mapping[str, object]) -> dict[str, Any]:
    """Choose the facts of an event that are there and of their type."""
    found: dict[str, Any] = {}
    for name, fit in _READERS[kind]:
        if name in facts:
            try:
                found[name] = fit(facts[name])
            except TypeError:
                continue
    return found


def _checked(*kinds: type) -> Callable[[object], Any]:
    def fit(value: object) -> Any:
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise TypeError
        return value

    return fit


def _optional(fit: Callable[[object], Any]) -> Callable[[object], Any]:
    return lambda value: None if value is None else fit(value)


def _texts(value: object) -> Any:
    if not isinstance(value, list | tuple):
        raise TypeError
    return tuple(map(str, value))


_FITS: Final[Mapping[str, Callable[[object], Any]]] = {
    "str": _checked(str),
    "int": _checked(int),
    "float": _checked(int, float),
    "str | None": _optional(_checked(str)),
    "int | None": _optional(_checked(int)),
    "float | None": _optional(_checked(int, float)),
    "Sequence[str]": _texts,
    "Mapping[str, object]": _checked(dict),
    "Mapping[str, object] | None": _optional(_checked(dict)),
}
"""How a fact of each type is read; a value that does not fit is a ``TypeError``."""
_READERS: Final[Mapping[type[Event], tuple[tuple[str, Callable[[object], Any]], ...]]] = {
    kind: tuple((one.name, _FITS[str(one.type)]) for one in fields(kind) if one.type in _FITS)
    for kind in (*KINDS.values(), PhaseEnded)
}
"""How each fact of each kind of event is read; a phase is in the name of its event."""
