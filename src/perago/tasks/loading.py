"""Finding the tasks of a module; a mistake in it is one sentence, not a traceback."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

from perago.errors import PeragoError, TaskDefinitionError, UsageError
from perago.tasks.bodies import HumanBody
from perago.tasks.declaration import ATTRIBUTE
from perago.tasks.definition import TaskDefinition
from perago.tasks.manifest import load_manifest


def load_tasks(modules: Iterable[str]) -> dict[str, TaskDefinition]:
    """Collect the tasks of modules and manifests.

    A module is named ``pkg.mod`` or ``pkg/mod.py``, a manifest ``tasks.toml``; with ``:name``
    behind it, it stands for one of its tasks.
    """
    found: dict[str, TaskDefinition] = {}
    for spec in modules:
        for task in _tasks_of(spec):
            other = found.setdefault(task.name, task)
            if other.body != task.body:
                raise TaskDefinitionError(
                    f"two tasks have the name {task.name!r}: {_where(other)} and {_where(task)}",
                    remedy="rename one of the tasks",
                )
    return found


def one_task(spec: str) -> TaskDefinition:
    """Load the task that a name stands for; it has to stand for one."""
    found = load_tasks([spec])
    if len(found) > 1:
        raise UsageError(
            f"{spec!r} has several tasks",
            remedy=f"name one ({spec}:{next(iter(found))}), or give a workflow file",
        )
    return next(iter(found.values()))


def load_attribute(spec: str) -> object:
    """Return ``module:attribute``."""
    name, _, attribute = spec.partition(":")
    module = load_module(name)
    if not attribute or not hasattr(module, attribute):
        raise UsageError(
            f"module {name!r} has no {attribute!r}", remedy="name one of its attributes"
        )
    return getattr(module, attribute)


def for_workers(tasks: Mapping[str, TaskDefinition]) -> dict[str, TaskDefinition]:
    """Leave out what people do; a worker with nothing else has nothing to do."""
    found = {name: task for name, task in tasks.items() if not isinstance(task.body, HumanBody)}
    if tasks and not found:
        raise UsageError(
            "people do all of these tasks", remedy="name a module with tasks for a worker, too"
        )
    return found


def load_module(name: str) -> ModuleType:
    """Import a module as seen from the current directory."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    name = _module_name(name)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(error.name + ".")):
            raise UsageError(
                f"module {name!r} was not found from {here}",
                remedy="check its name, or change to the directory it lies in",
            ) from None
        raise _broken(name, error) from None
    except PeragoError as error:
        raise type(error)(f"{_place(error)}{error.message}", remedy=error.remedy) from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a module may do anything at import
        raise _broken(name, error) from None


def _tasks_of(spec: str) -> list[TaskDefinition]:
    name, _, wanted = spec.partition(":")
    found = load_manifest(name) if name.endswith(".toml") else _declared_in(name)
    if not wanted:
        return found
    chosen = [task for task in found if wanted in {task.name, task.body.label}]
    if not chosen:
        raise UsageError(
            f"{name!r} has no task {wanted!r}",
            remedy=f"choose from {', '.join(sorted(task.name for task in found))}",
        )
    return chosen


def _declared_in(name: str) -> list[TaskDefinition]:
    found = [
        task
        for each in _with_submodules(load_module(name))
        for value in vars(each).values()
        if isinstance(task := getattr(value, ATTRIBUTE, None), TaskDefinition)
    ]
    if not found:
        raise TaskDefinitionError(
            f"module {name!r} declares no task", remedy="decorate a function with @task(...)"
        )
    return found


def _with_submodules(module: ModuleType) -> Iterator[ModuleType]:
    """A package stands for all modules in it, except one that is meant to be run."""
    yield module
    for found in pkgutil.iter_modules(getattr(module, "__path__", ())):
        if found.name != "__main__":
            yield from _with_submodules(load_module(f"{module.__name__}.{found.name}"))


def _where(task: TaskDefinition) -> str:
    return f"{task.body.source}:{task.body.label}"


def _module_name(name: str) -> str:
    """Turn a path below the current directory into a module name."""
    if name.endswith(".py") or os.sep in name:
        path = Path(name)
        if not path.exists():
            raise UsageError(f"file {name!r} does not exist", remedy="check the path")
        try:
            relative = path.resolve().relative_to(Path.cwd())
        except ValueError:
            raise UsageError(
                f"file {name!r} is not below the current directory",
                remedy="change to its directory, or name it as a module",
            ) from None
        return ".".join(relative.with_suffix("").parts)
    if not all(part.isidentifier() for part in name.split(".")):
        raise UsageError(f"{name!r} is not a module name", remedy="write it as pkg.module")
    return name


def _broken(name: str, error: BaseException) -> TaskDefinitionError:
    return TaskDefinitionError(
        f"module {name!r} cannot be imported: {_place(error)}{type(error).__name__}: {error}",
        remedy="correct it and try again",
    )


def _place(error: BaseException) -> str:
    """Name the line of the author's own code that raised."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{Path(error.filename).name} line {error.lineno}: "
    own = str(Path(__file__).parent)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith((own, "<frozen")):
            return f"{Path(frame.filename).name} line {frame.lineno}: "
    return ""
