"""What a caller in Python may name as a workflow and as tasks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from perago.brokers.conductor.builder import definition_of_builder
from perago.cli.workflow_files import complete, workflow_file
from perago.cli.workflow_source import WorkflowSource, definition_of_task, load_source
from perago.errors import TaskDefinitionError, UsageError
from perago.tasks.declaration import ATTRIBUTE
from perago.tasks.definition import TaskDefinition
from perago.tasks.loading import load_tasks

One = str | ModuleType | Callable[..., Any]
Tasks = One | Iterable[One]
Own = Mapping[str, TaskDefinition]
"""Tasks that no executor process could import: those of a notebook's cells."""


@dataclass(slots=True)
class ChosenTasks:
    """Tasks by the modules that executors import, and those that only this process has."""

    modules: dict[str, None] = field(default_factory=dict)
    own: dict[str, TaskDefinition] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.modules or self.own)

    def all(self) -> dict[str, TaskDefinition]:
        """Collect the tasks; one name stands for one function."""
        found = load_tasks(self.modules)
        for name, task in self.own.items():
            if name in found and found[name].body != task.body:
                raise TaskDefinitionError(
                    f"two tasks have the name {name!r}: one of this session and one of "
                    f"{found[name].body.source!r}",
                    remedy="rename one of the tasks",
                )
        return {**found, **self.own}


def tasks_of(given: object) -> ChosenTasks:
    """Sort modules, their names and functions by who can import them."""
    chosen = ChosenTasks()
    several = isinstance(given, Iterable) and not isinstance(given, str | Mapping)
    for each in given if several else [given]:  # type: ignore[attr-defined]
        _add(chosen, each)
    return chosen


def source_of(workflow: object, chosen: ChosenTasks) -> tuple[WorkflowSource, Own]:
    """Tell by its form what the workflow is."""
    if (alone := _task(workflow)) is not None and not chosen:
        _add(chosen, workflow)
        tasks = {alone.name: alone}
        definition: Mapping[str, object] = definition_of_task(alone)
        name, single = alone.name, True
        return WorkflowSource(definition, name, tuple(chosen.modules), tasks, single), chosen.own
    if isinstance(workflow, str) and not workflow.endswith(".json") and not chosen:
        return load_source(workflow, []), {}
    if isinstance(workflow, Mapping):
        definition, name = workflow, "workflow"
    elif isinstance(workflow, Path) or (isinstance(workflow, str) and workflow.endswith(".json")):
        definition, name = workflow_file(Path(workflow)), str(workflow)
    elif isinstance(workflow, str):
        return load_source(workflow, [*chosen.modules]), chosen.own
    else:
        definition, name = definition_of_builder(workflow, "the workflow"), "workflow"
    if not chosen:
        raise UsageError(
            "no tasks were given",
            remedy="name their module, or the functions: perago.run(workflow, [one, two])",
        )
    definition = complete(definition, name, {})
    return WorkflowSource(definition, name, tuple(chosen.modules), chosen.all()), chosen.own


def _add(chosen: ChosenTasks, given: object) -> None:
    if isinstance(given, str):
        chosen.modules[given] = None
    elif isinstance(given, ModuleType):
        if _importable(given.__name__):
            chosen.modules[given.__name__] = None
        else:
            for value in vars(given).values():
                if (task := _task(value)) is not None:
                    chosen.own[task.name] = task
    elif (task := _task(given)) is not None:
        module, name = task.body.source, task.body.label
        if _importable(module) and getattr(sys.modules[module], name, None) is given:
            chosen.modules[f"{module}:{task.name}"] = None
        else:
            chosen.own[task.name] = task
    else:
        raise UsageError(
            f"tasks: {type(given).__name__} {given!r:.60} is not a task",
            remedy="give a module, its name, or functions decorated with @task",
        )


def _task(value: object) -> TaskDefinition | None:
    found = getattr(value, ATTRIBUTE, None)
    return found if isinstance(found, TaskDefinition) else None


def _importable(name: str) -> bool:
    """Return whether a fresh interpreter would find the module; a notebook's own is not one."""
    module = sys.modules.get(name)
    return name != "__main__" and getattr(module, "__spec__", None) is not None
