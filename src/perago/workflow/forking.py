"""The tasks of a FORK_JOIN_DYNAMIC: listed by its input, which only a run knows. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from perago.errors import WorkflowDefinitionError
from perago.workflow.fields import Fields
from perago.workflow.kinds import check_task_fields, kind_of
from perago.workflow.parsing import simple_task
from perago.workflow.tasks import WORK, DynamicForkTask, SimpleTask

DEFINITIONS: Final = "forkedTaskDefs"
"""Where the record of a fork keeps its tasks, as Conductor does."""
NAMES: Final = "forkedTasks"
Json = dict[str, Any]


class ForkInputError(ValueError):
    """The input does not list tasks that can run."""


@dataclass(frozen=True, slots=True)
class Forked:
    """What the input of a fork came to: its tasks, each with its input."""

    definitions: tuple[Json, ...]

    @property
    def names(self) -> list[str]:
        """Return their reference names, in order; the JOIN waits for all of them."""
        return [str(each["taskReferenceName"]) for each in self.definitions]

    @property
    def as_input(self) -> Json:
        """Return what the record of the fork keeps."""
        return {DEFINITIONS: list(self.definitions), NAMES: self.names}

    def tasks(self) -> list[SimpleTask]:
        """Return the tasks."""
        return [_task(each) for each in self.definitions]


def forked(
    fork: DynamicForkTask,
    given: Mapping[str, object],
    known: Collection[str],
    taken: Collection[str],
) -> Forked:
    """Read the tasks of a fork from its input; ``taken`` are the names of the definition itself."""
    listed, inputs = given.get(fork.tasks_param), given.get(fork.inputs_param)
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise ForkInputError(f"input {fork.tasks_param!r} of {fork.reference_name!r} is not a list")
    if not isinstance(inputs, Mapping):
        raise ForkInputError(
            f"input {fork.inputs_param!r} of {fork.reference_name!r} is not an object"
        )
    where = f"{fork.reference_name}.{fork.tasks_param}"
    found = Forked(
        tuple(
            _definition(each, inputs, known, taken, f"{where}[{number}]")
            for number, each in enumerate(listed)
        )
    )
    if twice := next((name for name in found.names if found.names.count(name) > 1), None):
        # Conductor runs the last of them and says nothing of the others.
        raise ForkInputError(f"two tasks in {where} are called {twice!r}")
    return found


def kept(record_input: Mapping[str, object]) -> Forked:
    """Read the tasks back from the record of a fork."""
    found = record_input.get(DEFINITIONS)
    return Forked(tuple(found) if isinstance(found, list | tuple) else ())


def _definition(
    listed: object,
    inputs: Mapping[str, object],
    known: Collection[str],
    taken: Collection[str],
    where: str,
) -> Json:
    if not isinstance(listed, Mapping):
        raise ForkInputError(f"{where} is not a task")
    fields = Fields("the input", where, listed)
    try:
        kind = kind_of(fields)
        if kind not in WORK:
            raise ForkInputError(f"{where} is of type {kind}: only SIMPLE and HUMAN run here")
        check_task_fields(fields, kind)
        name, reference = fields.text("name"), fields.text("taskReferenceName")
        own = fields.mapping("inputParameters")
    except WorkflowDefinitionError as error:
        raise ForkInputError(str(error)) from None
    if name not in known:
        raise ForkInputError(f"{where}: {name!r} is not a known task")
    if reference in taken:
        raise ForkInputError(f"{where}: a step of the workflow is called {reference!r}, too")
    for key in ("taskDefinition", "startDelay"):
        if listed.get(key):
            raise ForkInputError(f"{where}: {key} is not honoured here in a dynamic fork")
    given = inputs.get(reference)
    if given is not None and not isinstance(given, Mapping):
        raise ForkInputError(f"the input of task {reference!r} is not an object")
    return {**listed, "type": str(kind), "inputParameters": {**own, **(given or {})}}


def _task(definition: Json) -> SimpleTask:
    reference = str(definition["taskReferenceName"])
    return simple_task(Fields("the input", reference, definition), definition["name"], reference)
