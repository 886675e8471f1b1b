"""Which task is over before another begins: what it may read, and who is parallel. Pure.

Definitions of any kind are read: a server runs more kinds of task than ``perago run`` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from perago.workflow.tracing import WITHIN, Task, cases, inner, reference, walk


@dataclass(frozen=True, slots=True)
class Order:
    """The partial order of a workflow, by task reference name.

    ``before[x]``: tasks that are finished, or will never run, when ``x`` begins.
    ``instead_of[x]``: tasks in other cases of a SWITCH around ``x``; a run has one or the other.
    """

    before: Mapping[str, frozenset[str]]
    instead_of: Mapping[str, frozenset[str]]

    def parallel(self, one: str, other: str) -> bool:
        """Return whether two tasks may run at the same time, or in either order."""
        return not (
            one == other
            or one in self.before[other]
            or other in self.before[one]
            or other in self.instead_of[one]
        )


def order_of(tasks: object) -> Order:
    """Work out the order of a workflow from the shape of its ``tasks``."""
    builder = _Builder({}, {})
    builder.sequence(tasks, frozenset())
    none: frozenset[str] = frozenset()
    instead = {name: builder.instead_of.get(name, none) for name in builder.before}
    return Order(before=builder.before, instead_of=instead)


@dataclass(frozen=True, slots=True)
class _Builder:
    before: dict[str, frozenset[str]]
    instead_of: dict[str, frozenset[str]]
    behind: dict[str, frozenset[str]] = field(default_factory=dict)
    """What is over when a task is: the steps of a SWITCH's case need not be."""

    def sequence(self, tasks: object, over: frozenset[str]) -> frozenset[str]:
        """Place a list of tasks; return what is over behind the last of them."""
        for task in tasks if isinstance(tasks, list) else []:
            if isinstance(task, Mapping):
                over = self._task(task, over)
        return over

    def _task(self, task: Task, over: frozenset[str]) -> frozenset[str]:
        name = reference(task)
        self.before[name] = over
        over |= {name}
        # Behind a FORK only the FORK itself is over; its JOIN says what else is.
        for branch in inner(task, "forkTasks"):
            self.sequence(branch, over)
        for joined in inner(task, "joinOn"):
            over |= self.behind.get(str(joined), frozenset()) | {str(joined)}
        # A loop and a call are over when all that is inside is, branches that nothing joins too.
        body = [*inner(task, "loopOver"), *inner(task, WITHIN)]
        self.sequence(body, over)
        over |= {reference(each) for each, _ in walk(body)}
        self.behind[name] = over
        return self._switch(cases(task), over)

    def _switch(self, found: list[list[object]], over: frozenset[str]) -> frozenset[str]:
        ends = [self.sequence(case, over) for case in found]
        names = [frozenset(reference(task) for task, _ in walk(case)) for case in found]
        for index, own in enumerate(names):
            others = frozenset[str]().union(*names[:index], *names[index + 1 :])
            for name in own:
                self.instead_of[name] = self.instead_of.get(name, frozenset()) | others
        return over.union(*ends)
