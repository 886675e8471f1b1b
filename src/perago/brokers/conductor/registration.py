"""What registering would change on a server. Pure.

A server fills in defaults and times of its own: these are no differences. A key that we left out
is one only where we could have sent it and the server holds something other than its default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["task", "workflow"]
State = Literal["new", "changed", "same"]

ABSENT = object()
"""Stands for a value that is not there."""
_EMPTY: Sequence[Any] = (None, "", 0, False, [], {})
_SERVERS_OWN = frozenset(
    {"$schema", "accessPolicy", "createTime", "createdBy", "ownerApp", "updateTime", "updatedBy"}
)
# Where every key is the author's own, so that a missing one is missing.
_FREE = frozenset(
    {
        *("data", "decisionCases", "inputParameters", "inputTemplate"),
        *("onStateChange", "outputParameters", "variables"),
    }
)
# Keys that may be left out, and what the server then puts in their place.
_USUAL: Mapping[str, Sequence[Any]] = {
    "backoffScaleFactor": (1,),
    "concurrentExecLimit": (),
    "description": (),
    "evaluatorType": ("value-param",),
    "expression": (),
    "failureWorkflow": (),
    "inputSchema": (),
    "joinOn": (),
    "optional": (),
    "outputSchema": (),
    "rateLimitFrequencyInSeconds": (1,),
    "rateLimitPerFrequency": (),
    "restartable": (True,),
    "retryCount": (3,),
    "startDelay": (),
    "taskDefinition": (),
    "timeoutPolicy": ("TIME_OUT_WF", "ALERT_ONLY"),
    "timeoutSeconds": (),
    **dict.fromkeys(_FREE - {"data"}, ()),
}


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that is not what it should be; ``ABSENT`` on the side that lacks it."""

    path: str
    found: Any
    wanted: Any

    def as_json(self) -> dict[str, Any]:
        """Spell it for machines; a side that lacks the value has no key."""
        sides = {"from": self.found, "to": self.wanted}
        present = {key: value for key, value in sides.items() if value is not ABSENT}
        return {"path": self.path, **present}


@dataclass(frozen=True, slots=True)
class Registration:
    """One definition, and what sending it would change."""

    kind: Kind
    name: str
    definition: Mapping[str, Any]
    state: State
    differences: tuple[Difference, ...] = ()


def registration(
    kind: Kind, name: str, wanted: Mapping[str, Any], found: Mapping[str, Any] | None
) -> Registration:
    """Compare a definition with what the server has under its name."""
    if found is None:
        return Registration(kind, name, wanted, "new")
    changes = tuple(differences(wanted, found))
    return Registration(kind, name, wanted, "changed" if changes else "same", changes)


def differences(wanted: Any, found: Any, path: str = "", *, free: bool = False) -> list[Difference]:
    """List what differs, by path; below a free key everything counts."""
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        return list(_of_mappings(wanted, found, path, free=free))
    if _is_list(wanted) and _is_list(found) and len(wanted) == len(found):
        return [
            change
            for index, (one, other) in enumerate(zip(wanted, found, strict=True))
            for change in differences(one, other, f"{path}[{index}]", free=free)
        ]
    return [] if _same(wanted, found) else [Difference(path, found, wanted)]


def _of_mappings(
    wanted: Mapping[str, Any], found: Mapping[str, Any], path: str, *, free: bool
) -> Iterator[Difference]:
    for key in (*wanted, *(key for key in found if key not in wanted)):
        if not free and key in _SERVERS_OWN:
            continue
        below = f"{path}.{key}" if path else key
        here, there = wanted.get(key, ABSENT), found.get(key, ABSENT)
        if free:
            yield from differences(here, there, below, free=True)
        elif here is ABSENT:
            if key in _USUAL and not _empty(there) and there not in _USUAL[key]:
                yield Difference(below, there, ABSENT)
        elif there is ABSENT:
            if not _empty(here):
                yield Difference(below, ABSENT, here)
        else:
            yield from differences(here, there, below, free=key in _FREE)


def _same(wanted: Any, found: Any) -> bool:
    """Compare two values; in JSON true is not 1."""
    return isinstance(wanted, bool) == isinstance(found, bool) and bool(wanted == found)


def _empty(value: Any) -> bool:
    return any(value is each or (type(value) is type(each) and value == each) for each in _EMPTY)


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))
