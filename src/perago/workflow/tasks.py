"""The tasks of a WorkflowDef that run here, as frozen values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from perago.workflow.controls import Controls, TimeoutAction


class TaskKind(StrEnum):
    """The values of ``type`` that run here."""

    SIMPLE = "SIMPLE"
    FORK_JOIN = "FORK_JOIN"
    JOIN = "JOIN"
    SWITCH = "SWITCH"
    SET_VARIABLE = "SET_VARIABLE"
    TERMINATE = "TERMINATE"
    WAIT = "WAIT"
    DO_WHILE = "DO_WHILE"
    HUMAN = "HUMAN"
    FORK_JOIN_DYNAMIC = "FORK_JOIN_DYNAMIC"
    SUB_WORKFLOW = "SUB_WORKFLOW"


WORK: Final = frozenset({TaskKind.SIMPLE, TaskKind.HUMAN})
"""Kinds that are somebody's work; the engine does the others itself."""


@dataclass(frozen=True, slots=True)
class SimpleTask:
    """A task that is somebody's work: an executor's, or a person's where its kind is ``HUMAN``.

    ``where`` is its JSON path in the file, for messages.
    """

    name: str
    reference_name: str
    where: str
    input: Mapping[str, object] = field(default_factory=dict)
    optional: bool = False
    start_delay: float = 0
    retry_count: int | None = None
    controls: Controls | None = None
    kind: TaskKind = TaskKind.SIMPLE

    def controls_among(self, registered: Mapping[str, Controls]) -> Controls:
        """Apply what the workflow task says over what its definition says."""
        controls = self.controls or registered.get(self.name) or Controls()
        if self.retry_count is None:
            return controls
        return replace(controls, retry_count=self.retry_count)


@dataclass(frozen=True, slots=True)
class ForkTask:
    """Starts its branches side by side; the JOIN behind it waits for them."""

    name: str
    reference_name: str
    where: str
    branches: tuple[Tasks, ...]


@dataclass(frozen=True, slots=True)
class DynamicForkTask:
    """Starts the tasks that its input lists; the JOIN behind it waits for all of them.

    Two of its ``input``, by name: the tasks, and the input of each by reference name.
    """

    name: str
    reference_name: str
    where: str
    input: Mapping[str, object]
    tasks_param: str
    inputs_param: str


@dataclass(frozen=True, slots=True)
class JoinTask:
    """Waits for the tasks it names, or for all of the dynamic fork before it."""

    name: str
    reference_name: str
    where: str
    join_on: tuple[str, ...]
    fork: str = ""
    """The dynamic fork before it, by reference name."""


@dataclass(frozen=True, slots=True)
class SwitchTask:
    """Runs the case that ``expression`` names: an input parameter, or a script over them."""

    name: str
    reference_name: str
    where: str
    expression: str
    input: Mapping[str, object]
    cases: Mapping[str, Tasks]
    default: Tasks = ()
    script: bool = False

    def chosen(self, value: str) -> Tasks:
        """Return the case of a value, also an empty one; the default where there is none."""
        return self.cases.get(value, self.default)


@dataclass(frozen=True, slots=True)
class SetVariableTask:
    """Gives variables of the workflow new values: its input, by name."""

    name: str
    reference_name: str
    where: str
    input: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class TerminateTask:
    """Ends the run, with the status, the reason and the output that its input says."""

    name: str
    reference_name: str
    where: str
    input: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class WaitTask:
    """Is over when a time has passed, or has come."""

    name: str
    reference_name: str
    where: str
    input: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class LoopTask:
    """Runs its body again as long as its condition, a script, is true; once in any case."""

    name: str
    reference_name: str
    where: str
    input: Mapping[str, object]
    condition: str
    body: Tasks


@dataclass(frozen=True, slots=True)
class SubWorkflowTask:
    """Runs another workflow, as a run of its own, and is over when that is.

    ``called`` and ``version`` are what the definition names; ``definition`` is what runs.
    """

    name: str
    reference_name: str
    where: str
    input: Mapping[str, object]
    called: str
    version: int | None
    definition: Mapping[str, object]
    optional: bool = False
    start_delay: float = 0
    retry_count: int | None = None
    controls: Controls | None = None

    def controls_among(self, registered: Mapping[str, Controls]) -> Controls:
        """Return how often it is tried again: as in Conductor not at all, where nothing says so.

        That its own workflow timed out is a failure like any other here.
        """
        known = self.controls or registered.get(self.name) or Controls(retry_count=0)
        retries = known.retry_count if self.retry_count is None else self.retry_count
        return replace(
            known,
            retry_count=retries,
            timeout_policy=TimeoutAction.RETRY,
            timeout_seconds=0,
            total_timeout_seconds=0,
        )


WithInput = (
    SimpleTask
    | SubWorkflowTask
    | DynamicForkTask
    | SwitchTask
    | SetVariableTask
    | TerminateTask
    | WaitTask
    | LoopTask
)
WorkflowTask = WithInput | ForkTask | JoinTask
Tasks = tuple[WorkflowTask, ...]


def branches_of(task: WorkflowTask) -> tuple[Tasks, ...]:
    """Return the task lists nested directly in a task."""
    match task:
        case ForkTask():
            return task.branches
        case SwitchTask():
            return (*task.cases.values(), task.default)
        case LoopTask():
            return (task.body,)
        case _:
            return ()


def every(tasks: Iterable[WorkflowTask]) -> Iterator[WorkflowTask]:
    """Walk all tasks, nested ones behind the task that holds them."""
    for task in tasks:
        yield task
        for branch in branches_of(task):
            yield from every(branch)
