"""Telling a Conductor server what tasks and workflows there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from perago.brokers.conductor.registration import Registration, registration
from perago.brokers.conductor.taskdef import taskdef
from perago.brokers.local import parse_workflow
from perago.errors import WorkflowDefinitionError
from perago.tasks.definition import TaskDefinition
from perago.workflow.chain import refuse_unchained_writers
from perago.workflow.inputs import check_names
from perago.workflow.shapes import shape_of
from perago.workflow.subworkflow import Find
from perago.workflow.tracing import walk
from perago.workflow.writers import refuse_parallel_writers

if TYPE_CHECKING:  # It needs the extra "conductor", and a workflow is checked without a server.
    from perago.brokers.conductor.client import ConductorClient

Workflows = Mapping[str, Mapping[str, Any]]
"""WorkflowDefs by the file they came from."""


def check_workflow(
    definition: Mapping[str, Any], tasks: Mapping[str, TaskDefinition], source: str
) -> list[str]:
    """Refuse what cannot be registered; return warnings.

    Two writers of one branch may neither run at the same time (W9) nor one after the other
    without the later one reading the earlier one's output (W9a). A server runs more kinds of task
    than ``perago run`` does: these are no mistakes. Names that do not fit are.
    """
    _refuse_shapeless(definition, source)
    misspelt = check_names(definition, {name: shape_of(tasks[name]) for name in tasks}, source)
    writers = frozenset(name for name, task in tasks.items() if task.writable)
    readers = frozenset(name for name, task in tasks.items() if task.workspace) - writers
    refuse_parallel_writers(definition, writers, source)
    warnings = misspelt + refuse_unchained_writers(definition, writers, readers, source)
    named = {str(task.get("name")) for task, _ in walk(definition["tasks"])}
    try:
        parse_workflow(definition, named | set(tasks), source)
    except WorkflowDefinitionError as error:
        remedy = f"; {error.remedy}" if error.remedy else ""
        said = f"{error.message}: a server may run it, 'perago run' does not{remedy}"
        return [*warnings, said]
    return warnings


def compare(
    client: ConductorClient, tasks: Iterable[TaskDefinition], workflows: Iterable[Mapping[str, Any]]
) -> list[Registration]:
    """Ask the server what it has, and say what would change."""
    found = [
        registration("task", task.name, taskdef(task), client.taskdef(task.name)) for task in tasks
    ]
    for definition in workflows:
        name, version = str(definition["name"]), int(definition.get("version") or 1)
        label = f"{name} version {version}"
        there = client.workflow(name, version)
        found.append(registration("workflow", label, definition, there))
    return found


def send(client: ConductorClient, changes: Sequence[Registration]) -> None:
    """Send what is new or changed: tasks first, because workflows name them."""
    for kind, put in (("task", client.put_taskdefs), ("workflow", client.put_workflows)):
        due = [each.definition for each in changes if each.kind == kind and each.state != "same"]
        if due:
            put(due)


def finder(workflows: Workflows, client: ConductorClient | None = None) -> Find:
    """Find workflows that are called: among those to be registered, then on the server."""

    def find(name: str, version: int | None) -> Mapping[str, Any] | None:
        here = [each for each in workflows.values() if each.get("name") == name]
        fits = [each for each in here if version in {None, each.get("version") or 1}]
        newest = max(fits, key=lambda each: int(each.get("version") or 1), default=None)
        if client is None or (newest is not None and version is not None):
            return newest
        there = client.workflow(name, version)
        if newest is None or there is None:
            return newest or there
        # Without a version the server takes the newest that it has, which this may become.
        return max(newest, there, key=lambda each: int(each.get("version") or 1))

    return find


def unregistered(
    client: ConductorClient, definition: Mapping[str, Any], known: Iterable[str]
) -> list[str]:
    """Name the SIMPLE tasks of a workflow that neither we nor the server have a definition of."""
    simple = {
        str(task.get("name"))
        for task, _ in walk(definition["tasks"])
        if task.get("type", "SIMPLE") == "SIMPLE" and not task.get("taskDefinition")
    }
    return sorted(name for name in simple - set(known) if client.taskdef(name) is None)


def _refuse_shapeless(definition: Mapping[str, Any], source: str) -> None:
    name, version, tasks = (definition.get(key) for key in ("name", "version", "tasks"))
    if not isinstance(name, str) or not name.strip():
        raise WorkflowDefinitionError(f"{source}: name is missing", remedy='add "name": "..."')
    if version is not None and (type(version) is not int or version < 1):
        raise WorkflowDefinitionError(
            f"{source}: version is {version!r}", remedy="use a whole number of 1 or more"
        )
    if not isinstance(tasks, list) or not tasks:
        raise WorkflowDefinitionError(
            f"{source}: tasks is missing or empty", remedy="add at least one task"
        )
    seen: set[str] = set()
    for task, _ in walk(tasks):
        reference = task.get("taskReferenceName")
        if not isinstance(reference, str) or not reference or not task.get("name"):
            raise WorkflowDefinitionError(
                f"{source}: a task has no name or no taskReferenceName",
                remedy="give every task both",
            )
        if reference in seen:
            raise WorkflowDefinitionError(
                f"{source}: taskReferenceName {reference!r} is used twice",
                remedy="give every task its own taskReferenceName",
            )
        seen.add(reference)
