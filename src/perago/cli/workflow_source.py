"""What ``perago run`` runs: a workflow file, a workflow built in Python, or one task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perago.brokers.conductor.builder import definition_of_builder
from perago.brokers.local import parse_workflow
from perago.cli.workflow_files import complete, workflow_file
from perago.errors import UsageError
from perago.tasks.definition import TaskDefinition
from perago.tasks.loading import load_attribute, load_tasks, one_task
from perago.workflow.inputs import check_names
from perago.workflow.scaffold import reference_name
from perago.workflow.shapes import shape_of


@dataclass(frozen=True, slots=True)
class WorkflowSource:
    """A definition, where it came from, and the tasks it may use."""

    definition: Mapping[str, object]
    name: str
    modules: tuple[str, ...]
    tasks: Mapping[str, TaskDefinition]
    single_task: bool = False

    @property
    def needs_workspace(self) -> bool:
        """Return whether any of the tasks works on files."""
        return any(task.workspace is not None for task in self.tasks.values())

    def check_names(self, given: Mapping[str, object]) -> list[str]:
        """Refuse names that do not fit, before anything is made; return warnings."""
        parse_workflow(self.definition, self.tasks, self.name)
        shapes = {name: shape_of(task) for name, task in self.tasks.items()}
        return check_names(self.definition, shapes, self.name, given)


def load_source(target: str, modules: list[str]) -> WorkflowSource:
    """Tell by its form what the target is."""
    modules, others = _told_apart(modules)
    if target.endswith(".json"):
        definition, name = workflow_file(Path(target)), target
    elif modules and ":" in target:
        definition, name = definition_of_builder(load_attribute(target), target), target
    elif modules:
        raise UsageError(
            f"{target!r} is not a workflow file", remedy="name a .json file, or module:workflow"
        )
    else:
        return _single_task(target)
    if not modules:
        raise UsageError(
            f"no module with the tasks of {target} was given",
            remedy=f"name it: perago run {target} MODULE",
        )
    definition = complete(definition, name, others)
    return WorkflowSource(definition, name, tuple(modules), load_tasks(modules))


def _told_apart(targets: list[str]) -> tuple[list[str], dict[str, Mapping[str, object]]]:
    """Tell modules from workflow files, and read the files."""
    files = (target for target in targets if target.endswith(".json"))
    modules = [target for target in targets if not target.endswith(".json")]
    return modules, {file: workflow_file(Path(file)) for file in files}


def modules_and_workflows(
    targets: list[str], command: str
) -> tuple[list[str], dict[str, Mapping[str, object]]]:
    """Tell modules from workflow files; their tasks have to be named too."""
    modules, files = _told_apart(targets)
    if not modules:
        raise UsageError(
            "no module with tasks was given",
            remedy=f"name it: perago {command} MODULE WORKFLOW.json",
        )
    return modules, files


def _single_task(target: str) -> WorkflowSource:
    """Wrap one task in a workflow of its own, so that it runs like any other."""
    task = one_task(target)
    tasks = {task.name: task}
    return WorkflowSource(definition_of_task(task), target, (target,), tasks, single_task=True)


def definition_of_task(task: TaskDefinition) -> dict[str, object]:
    """Write the workflow that runs one task alone."""
    given: dict[str, object] = {"params": "${workflow.input.params}"}
    if task.workspace is not None:
        given["workspace"] = "${workflow.input.workspace}"
    step = reference_name(task.name)
    outputs = {key: f"${{{step}.output.{key}}}" for key in ("workspace", "result")}
    return {
        "name": task.name,
        "version": 1,
        "schemaVersion": 2,
        "tasks": [
            {
                "name": task.name,
                "taskReferenceName": step,
                "type": str(shape_of(task).kind),
                "inputParameters": given,
            }
        ],
        "inputTemplate": {"params": {}},
        "outputParameters": outputs,
    }
