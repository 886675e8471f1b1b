"""Which task is over before another begins: what it may read, and who is parallel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perago.workflow.tasks import (
    ForkTask,
    JoinTask,
    SimpleTask,
    SwitchTask,
    Tasks,
    every,
)


@dataclass(frozen=True, slots=True)
class Order:
    """The partial order of a workflow, by task reference name.

    ``before[x]``: tasks that are finished, or will never run, when ``x`` begins.
    ``instead_of[x]``: tasks in other cases of a SWITCH around ``x``; a run has one or the other.
    """

    before: Mapping[str, frozenset[str]]
    instead_of: Mapping[str, frozenset[str]]

    def parallel(self, one: str, other: str) -> bool:
        """Tell whether two tasks may run at the same time, or in either order."""
        return not (
            one == other
            or one in self.before[other]
            or other in self.before[one]
            or other in self.instead_of[one]
        )


def order_of(tasks: Tasks) -> Order:
    """Work out the order of a workflow from its shape."""
    builder = _Builder({}, {})
    builder.sequence(tasks, frozenset())
    none: frozenset[str] = frozenset()
    instead = {name: builder.instead_of.get(name, none) for name in builder.before}
    return Order(before=builder.before, instead_of=instead)


@dataclass(frozen=True, slots=True)
class _Builder:
    before: dict[str, frozenset[str]]
    instead_of: dict[str, frozenset[str]]

    def sequence(self, tasks: Tasks, over: frozenset[str]) -> frozenset[str]:
        """Place a list of tasks; return what is over behind the last of them."""
        for task in tasks:
            self.before[task.reference_name] = over
            match task:
                case SimpleTask():
                    over |= {task.reference_name}
                case ForkTask():
                    # Behind a FORK only the FORK itself is over; its JOIN says what else is.
                    over |= {task.reference_name}
                    for branch in task.branches:
                        self.sequence(branch, over)
                case JoinTask():
                    for name in task.join_on:
                        over |= self.before[name] | {name}
                    over |= {task.reference_name}
                case SwitchTask():
                    over = self._switch(task, over | {task.reference_name})
        return over

    def _switch(self, task: SwitchTask, over: frozenset[str]) -> frozenset[str]:
        cases = (*task.cases.values(), task.default)
        ends = [self.sequence(case, over) for case in cases]
        names = [frozenset(inner.reference_name for inner in every(case)) for case in cases]
        for index, own in enumerate(names):
            others = frozenset[str]().union(*names[:index], *names[index + 1 :])
            for name in own:
                self.instead_of[name] = self.instead_of.get(name, frozenset()) | others
        return over.union(*ends)
