"""Expressions that are allowed, and null when they are read: on Conductor and here. Pure.

Nothing fails then, so a workflow that means something else shows it in its results at best.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perago.workflow.order import Order, order_of
from perago.workflow.readings import Reading, readings
from perago.workflow.spelling import close_to
from perago.workflow.tracing import Task, inner, reference, walk

_SET_BEFORE = "set it before, or give it a first value in the variables of the workflow"
_NAMED = 3
"""The length of a path that ends in a name: ``workflow.variables.x``, ``join.output.x``."""


def warn_of_nulls(definition: Mapping[str, Any], source: str) -> list[str]:
    """Name variables that are read before they are set, and joined outputs of a loop's rounds."""
    tasks = {reference(task): task for task, _ in walk(definition.get("tasks"))}
    loops = [
        _Loop(name, frozenset(reference(each) for each, _ in walk(inner(task, "loopOver"))))
        for name, task in tasks.items()
        if task.get("type") == "DO_WHILE"
    ]
    declared = definition.get("variables")
    first = frozenset(map(str, declared)) if isinstance(declared, Mapping) else frozenset[str]()
    found = _Nulls(tasks, loops, order_of(definition.get("tasks")), first)
    told = (found.of(read) for read in readings(definition) if len(read.path) >= _NAMED)
    # A step may read the same thing in two of its params.
    return list(dict.fromkeys(f"{source}: {text}" for text in told if text))


@dataclass(frozen=True, slots=True)
class _Loop:
    name: str
    body: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Nulls:
    tasks: Mapping[str, Task]
    loops: list[_Loop]
    order: Order
    first: frozenset[str]
    """The variables with a first value."""

    def of(self, read: Reading) -> str:
        """Say why an expression is null; empty where it need not be."""
        if read.path[:2] == ["workflow", "variables"]:
            return self._variable(read)
        if read.path[1] == "output" and self.tasks.get(read.path[0], {}).get("type") == "JOIN":
            return self._joined(read)
        return ""

    # --- variables ------------------------------------------------------------------------------

    def _variable(self, read: Reading) -> str:
        """Warn of a variable that is set, but not before it is read."""
        name, setters = read.path[2], self._setters(read.path[2])
        if read.step is None or name in self.first or not setters:
            return ""  # One that nothing sets at all is refused.
        if any(self._before(setter, read.step) for setter in setters):
            return ""
        near = close_to(name, self._set_before(read.step))
        where = " and ".join(map(repr, setters))
        return (
            f"{read.place}: {read.shown} is null: {name!r} is set by {where}, which does not run"
            f" before it; {near if near.endswith('?') else _SET_BEFORE}"
        )

    def _setters(self, name: str) -> list[str]:
        return [step for step in self.tasks if name in self._set_by(step)]

    def _set_by(self, step: str) -> frozenset[str]:
        task = self.tasks[step]
        given = task.get("inputParameters") if task.get("type") == "SET_VARIABLE" else None
        return frozenset(map(str, given)) if isinstance(given, Mapping) else frozenset()

    def _set_before(self, step: str) -> frozenset[str]:
        before = (each for each in self.tasks if self._before(each, step))
        return self.first.union(*map(self._set_by, before))

    def _before(self, setter: str, step: str) -> bool:
        """Tell whether a step can find set what another one sets; in a loop, a round before."""
        if setter in self.order.before[step]:
            return True
        around = [loop for loop in self.loops if setter in loop.body]
        if any(loop.name == step for loop in around):  # Its condition is looked at behind a round.
            return True
        return any(step in loop.body for loop in around) and not self.order.parallel(setter, step)

    # --- joined outputs -------------------------------------------------------------------------

    def _joined(self, read: Reading) -> str:
        """Warn of a step's name in the output of a JOIN whose rounds name it with a number."""
        root, _, name, *rest = read.path
        joined = name in map(str, inner(self.tasks[root], "joinOn"))
        if not joined or not any(root in loop.body for loop in self.loops):
            return ""
        better = ".".join([name, "output", *rest])
        return (
            f"{read.place}: {read.shown} is null: in the loop the output of {root!r} has"
            f" {name + '__1'!r} for the first round, and so on; read ${{{better}}}, which is"
            " that of the newest round"
        )
