"""Check, before a run, that every expression names something that will have a value."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from perago.errors import WorkflowDefinitionError
from perago.workflow.expressions import TASK_ID, Expression, expressions_in
from perago.workflow.order import Order
from perago.workflow.scope import TASK_FIELDS, WORKFLOW, WORKFLOW_FIELDS
from perago.workflow.spelling import close_to
from perago.workflow.tasks import LoopTask, SetVariableTask, Tasks, WithInput, WorkflowTask, every

_VARIABLES = "variables"


def check_references(
    source: str,
    tasks: Tasks,
    order: Order,
    output_parameters: Mapping[str, object],
    variables: Collection[str],
) -> None:
    """Refuse unknown names, unknown fields, and tasks that are not over in time."""
    names = frozenset(task.reference_name for task in every(tasks))
    setters = [task for task in every(tasks) if isinstance(task, SetVariableTask)]
    known = frozenset(variables).union(*(task.input for task in setters))
    for task in every(tasks):
        if task.reference_name in (WORKFLOW, TASK_ID):
            raise WorkflowDefinitionError(
                f"{source}: {task.where}.taskReferenceName {task.reference_name!r} has a meaning"
                " of its own in expressions",
                remedy="choose another name",
            )
        if isinstance(task, WithInput):
            over = order.before[task.reference_name] | _earlier_rounds(task, tasks, order)
            checker = _Checker(source, names, known, task, over)
            checker.check(task.input, f"{task.where}.inputParameters")
    _Checker(source, names, known, None, names).check(output_parameters, "outputParameters")


def _earlier_rounds(task: WorkflowTask, tasks: Tasks, order: Order) -> frozenset[str]:
    """Name what a task of a loop reads from the round before, and what the loop itself reads."""
    for loop in every(tasks):
        if isinstance(loop, LoopTask):
            body = frozenset(inner.reference_name for inner in every(loop.body))
            if task is loop:
                return body
            if task.reference_name in body:
                own = task.reference_name
                return frozenset(name for name in body if not order.parallel(own, name))
    return frozenset()


@dataclass(frozen=True, slots=True)
class _Checker:
    source: str
    names: frozenset[str]
    variables: frozenset[str]
    task: WorkflowTask | None
    over: frozenset[str]

    def check(self, template: object, where: str) -> None:
        try:
            found = list(expressions_in(template, where))
        except WorkflowDefinitionError as error:
            raise WorkflowDefinitionError(
                f"{self.source}: {error.message}", remedy=error.remedy
            ) from None
        for place, expression in found:
            self._one(place, expression)

    def _one(self, place: str, expression: Expression) -> None:
        root, *rest = expression.path
        if root == TASK_ID and not rest and self.task is not None:
            return
        if root == WORKFLOW:
            self._field(place, expression, WORKFLOW_FIELDS)
            self._variable(place, expression)
        elif root not in self.names:
            raise self._refuse(
                place,
                f"{expression} names {root!r}, which is not a task of this workflow",
                close_to(str(root), self.names | {WORKFLOW}),
            )
        else:
            self._field(place, expression, TASK_FIELDS)
            self._in_time(place, expression, str(root))

    def _field(self, place: str, expression: Expression, known: frozenset[str]) -> None:
        step = expression.path[1] if len(expression.path) > 1 else None
        if step is not None and step not in known:
            raise self._refuse(
                place, f"{expression} has no field {step!r}", close_to(str(step), known)
            )

    def _variable(self, place: str, expression: Expression) -> None:
        _, field, name = (*expression.path[:3], None, None)[:3]
        if field == _VARIABLES and name is not None and name not in self.variables:
            raise self._refuse(
                place,
                f"{expression} reads a variable that nothing sets",
                close_to(str(name), self.variables),
            )

    def _in_time(self, place: str, expression: Expression, root: str) -> None:
        if root not in self.over:
            own = self.task.reference_name if self.task else ""
            raise self._refuse(
                place,
                f"{expression} reads {root!r}, which need not be finished when {own!r} starts",
                "read only tasks that run before it; after a FORK_JOIN, those its JOIN waits for",
            )

    def _refuse(self, place: str, problem: str, remedy: str) -> WorkflowDefinitionError:
        return WorkflowDefinitionError(f"{self.source}: {place}: {problem}", remedy=remedy)
