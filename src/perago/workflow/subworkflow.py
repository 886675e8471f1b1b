"""A SUB_WORKFLOW: where its definition comes from, what it is given, what it gives. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from perago.errors import WorkflowDefinitionError
from perago.protocol.values import Status
from perago.workflow.fields import Fields
from perago.workflow.records import RunRecord, RunStatus, TaskRecord, child_id_of
from perago.workflow.tasks import SubWorkflowTask
from perago.workflow.tracing import Task, changed, reference

KIND: Final = "SUB_WORKFLOW"
PARAM: Final = "subWorkflowParam"
DEFINITION: Final = "workflowDefinition"
CHILD_ID: Final = "subWorkflowId"
"""Where the output of a step names the run that it started."""
MOST: Final = 1_000
"""So many definitions are put into one; a few that call each other twice make many."""
_GIVEN: Final = "workflowInput"
_ENDS: Final = {
    RunStatus.COMPLETED: Status.COMPLETED,
    RunStatus.FAILED: Status.FAILED,
    RunStatus.TIMED_OUT: Status.TIMED_OUT,
    RunStatus.TERMINATED: Status.CANCELED,
}

_NOT_HERE: Final = frozenset({"taskToDomain", "idempotencyKey", "idempotencyStrategy", "priority"})

Definition = Mapping[str, Any]
Find = Callable[[str, int | None], Definition | None]
"""Finds a definition by name and version; the newest one where no version is given."""
_REMEDY: Final = "name the file of that workflow, too, or put it beside this one"


def called_by(task: Task) -> tuple[str, int | None] | None:
    """Return name and version of the workflow that a step calls; None where only a run can tell."""
    param = task.get(PARAM)
    if task.get("type") != KIND or not isinstance(param, Mapping):
        return None
    name, version = param.get("name"), param.get("version")
    if not isinstance(name, str) or "${" in name or isinstance(version, str):
        return None
    return name, version if isinstance(version, int) else None


def definition_in(task: Task) -> Definition | None:
    """Return the definition that stands in a step itself."""
    param = task.get(PARAM)
    found = param.get(DEFINITION) if isinstance(param, Mapping) else None
    return found if isinstance(found, Mapping) and task.get("type") == KIND else None


def with_children(
    definition: Definition, find: Find, source: str
) -> tuple[Definition, list[WorkflowDefinitionError]]:
    """Put the definitions of all sub workflows into a definition; return what kept some out."""
    filling = _Filling(find, source)
    return filling.definition(definition, (_named(definition),)), filling.problems


@dataclass(slots=True)
class _Filling:
    find: Find
    source: str
    problems: list[WorkflowDefinitionError] = field(default_factory=list)
    count: int = 0

    def definition(self, found: Definition, above: tuple[tuple[str, int], ...]) -> Definition:
        tasks = found.get("tasks")
        if not isinstance(tasks, list):
            return found
        return {**found, "tasks": changed(tasks, lambda task: self._task(task, above))}

    def _task(self, task: Task, above: tuple[tuple[str, int], ...]) -> Task:
        own, called = definition_in(task), called_by(task)
        if own is not None:
            # As in Conductor: then its own name counts, and no version is written down.
            param = {"name": own.get("name"), DEFINITION: self.definition(own, above)}
            return {**task, PARAM: {**task[PARAM], **param, "version": None}}
        if called is None:
            return task
        name, version = called
        step = f"{self.source}: step {reference(task)!r}"
        asked = f"{name!r}" if version is None else f"{name!r} version {version}"
        found = self.find(name, version)
        if found is None:
            return self._without(task, f"{step} calls workflow {asked}, which is not here", _REMEDY)
        if _named(found) in above:
            return self._without(
                task,
                f"{step} calls workflow {asked}, which calls itself in this way",
                "repeat steps with a DO_WHILE",
            )
        self.count += 1
        if self.count > MOST:
            return self._without(
                task,
                f"{step} calls workflow {asked}, and more than {MOST} are called in all",
                "call fewer: each call counts, those inside of others too",
            )
        return _filled(task, self.definition(found, (*above, _named(found))))

    def _without(self, task: Task, problem: str, remedy: str) -> Task:
        self.problems.append(WorkflowDefinitionError(problem, remedy=remedy))
        return task


def _named(definition: Definition) -> tuple[str, int]:
    version = definition.get("version")
    return str(definition.get("name")), version if isinstance(version, int) else 1


def _filled(task: Task, found: Definition) -> Task:
    param = {"version": found.get("version", 1), **task[PARAM], DEFINITION: found}
    if param["version"] is None:
        param["version"] = found.get("version", 1)
    return {**task, PARAM: param}


def check_param(param: Fields) -> tuple[str, Definition]:
    """Refuse a step whose workflow is not here; return the name and the definition of it."""
    for key in param.data:
        if key in {"name", "version", DEFINITION} or not param.data[key]:
            continue
        known = key in _NOT_HERE
        problem = "is not honoured here" if known else "is not a field of a SUB_WORKFLOW"
        raise param.refuse(key, problem, f"remove {key}")
    definition = param.data.get(DEFINITION)
    if definition is not None and not isinstance(definition, Mapping):
        raise param.refuse(
            DEFINITION, "must be an object", "write a WorkflowDef there, or name one by name"
        )
    name = param.text("name", str(definition.get("name")) if definition else None)
    if definition is None and "${" in name:
        raise param.refuse(
            "name", f"{name!r} is known only when it runs: not run here", "name the workflow"
        )
    if definition is None:
        raise param.refuse("name", f"{name!r} is a workflow that is not here", _REMEDY)
    return name, definition


# --- in a run ---------------------------------------------------------------------------------


def input_of(task: SubWorkflowTask, given: Mapping[str, object]) -> dict[str, object]:
    """Return the input of a step as Conductor writes it down, without the definition.

    The template of the workflow that is called is filled in; what a step without input gives is
    what is written down of the step itself.
    """
    found = task.definition.get("inputTemplate")
    template = found if isinstance(found, Mapping) else {}
    return {
        **({} if given else template),
        "subWorkflowName": task.called,
        "subWorkflowVersion": task.version,
        "subWorkflowDefinition": None,
        "subWorkflowTaskToDomain": None,
        "idempotencyKey": None,
        "idempotencyStrategy": None,
        "priority": None,
        _GIVEN: {**template, **given} if given else {},
    }


def child_of(task: SubWorkflowTask, record: TaskRecord, parent: RunRecord, now: float) -> RunRecord:
    """Make the run that an attempt starts."""
    given = record.input.get(_GIVEN) or record.input
    return RunRecord(
        id=child_id_of(record.task_id),
        workflow=task.definition,
        modules=parent.modules,
        input=dict(given) if isinstance(given, Mapping) else {},
        status=RunStatus.RUNNING,
        created_at=now,
        clock_from=now,
        correlation_id=parent.correlation_id,
        store=parent.store,
        parent=parent.id,
        parent_task=record.task_id,
    )


def end_of_child(child: RunRecord) -> tuple[Status, dict[str, object], str]:
    """Return what the end of its run makes of a step: status, output and reason."""
    status = _ENDS[child.status]
    reason = ""
    if status is not Status.COMPLETED:
        name, version = _named(child.workflow)
        reason = f"Sub workflow {name}.{version}/{child.id} failure reason: {child.reason}"
    return status, {CHILD_ID: child.id, **child.output}, reason


def end_by_parent(status: RunStatus, reason: str) -> str:
    """Return why a run ends when the one that it belongs to has ended."""
    told = f"reason: {reason}" if reason else f"status {status}"
    return f"Parent workflow has been terminated with {told}"
