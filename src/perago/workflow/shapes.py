"""The names that a task takes and gives, read off its schemas."""

from __future__ import annotations

from perago.tasks.bodies import HumanBody
from perago.tasks.definition import TaskDefinition
from perago.workflow.inputs import TaskShape


def shape_of(task: TaskDefinition) -> TaskShape:
    """Describe the input and the output of a task by their names."""
    taken, required = task.params.taken(), task.params.required()
    return TaskShape(
        workspace=task.workspace is not None,
        params=None if taken is None else frozenset[str]().union(*taken.values()),
        required=tuple(names for field, names in (taken or {}).items() if field in required),
        unknown_params="refuse" if task.params.closed else "warn",
        results=task.result.given(),
        human=isinstance(task.body, HumanBody),
    )
