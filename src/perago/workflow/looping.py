"""The rounds of a DO_WHILE: what its condition is given, and what it gives. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from perago.workflow.fields import Fields
from perago.workflow.records import TaskRecord
from perago.workflow.tasks import DynamicForkTask, LoopTask, Tasks, WorkflowTask, every

ROUND: Final = "iteration"
_MARK: Final = "__"
_NOT_HERE: Final = {
    "keepLastN": "would remove attempts of earlier rounds",
    "items": "would count the rounds in another way",
    "_items": "would count the rounds in another way",
}


def check_loop(fields: Fields, given: Mapping[str, object], body: Tasks) -> None:
    """Refuse what a server does not run, or runs in another way than it could be run here."""
    for key, why in _NOT_HERE.items():
        if key in given:
            raise fields.refuse(f"inputParameters.{key}", f"{why}: not run here", f"remove {key}")
    for task in every(body):
        if isinstance(task, LoopTask):
            raise fields.refuse(
                "loopOver",
                f"has the loop {task.reference_name!r} inside, whose condition cannot be read",
                "put the steps of both loops into one",
            )
        if isinstance(task, DynamicForkTask):
            raise fields.refuse(
                "loopOver",
                f"has the dynamic fork {task.reference_name!r} inside, which is not run here",
                "list its tasks in a FORK_JOIN, or put it behind the loop",
            )
        if _MARK in task.reference_name:
            raise fields.refuse(
                "loopOver",
                f"has the task {task.reference_name!r}: {_MARK} marks the rounds of a loop",
                "choose another taskReferenceName",
            )


def like_a_round(tasks: Tasks) -> WorkflowTask | None:
    """Return a task that is named like a round of another: both would be one."""
    all_tasks = list(every(tasks))
    rounds = {
        task.reference_name
        for loop in all_tasks
        if isinstance(loop, LoopTask)
        for task in every(loop.body)
    }
    for task in all_tasks:
        name, mark, number = task.reference_name.rpartition(_MARK)
        if mark and number.isdecimal() and name in rounds:
            return task
    return None


def rounds_of(loop: LoopTask, tasks: Iterable[TaskRecord]) -> list[TaskRecord]:
    """Return the attempts of all rounds, in order."""
    names = frozenset(task.reference_name for task in every(loop.body))
    return [task for task in tasks if task.step in names]


def output_after(
    loop: LoopTask, record: TaskRecord, tasks: Iterable[TaskRecord]
) -> dict[str, object]:
    """Return the output of the loop behind its current round: that of each step, by round."""
    now = record.iteration
    done = {task.step: task.output for task in rounds_of(loop, tasks) if task.iteration == now}
    return {**record.output, ROUND: now, str(now): done}


def condition_input(
    loop: LoopTask,
    given: Mapping[str, object],
    output: Mapping[str, object],
    tasks: Iterable[TaskRecord],
) -> dict[str, object]:
    """Return what the condition sees as ``$``: its input, the loop, the last round of each step."""
    last = {task.step: task.output for task in rounds_of(loop, tasks)}
    return {**given, loop.reference_name: output, **last}
