"""Where the workspace of a task comes from, read off a workflow definition. Pure.

A registered workflow gets its input later, so a repository or branch is compared as it is written:
two tasks that take the same expression write the same branch, whatever it will be. What is known
of the input is filled in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

_EXPRESSION = re.compile(r"\$\{\s*([^{}]+?)\s*\}")
_PASSED_ON = ("output", "workspace"), ("input", "workspace")

WITHIN: Final = "within"
"""The tasks of the workflow that a step calls, where a definition has been unfolded."""

Task = Mapping[str, Any]
Target = tuple[str, str]
"""Repository and branch, each as a name or as the expression that will name it."""
Place = tuple[tuple[str, int], ...]
"""Through which fork, into which of its branches."""


@dataclass(frozen=True, slots=True)
class OutputOf:
    """The commit is the output of a task that writes."""

    task: str


@dataclass(frozen=True, slots=True)
class GivenCommit:
    """The commit comes from outside of the workflow: its input, or a fixed one."""


@dataclass(frozen=True, slots=True)
class Untraceable:
    """The definition does not say which task made the commit."""

    text: str


Source = OutputOf | GivenCommit | Untraceable


def reference(task: Task) -> str:
    """Return the name by which a workflow refers to a task."""
    return str(task.get("taskReferenceName"))


def inner(task: Task, key: str) -> list[Any]:
    """Return a list of tasks inside of a task; anything else there is left to other checks."""
    found = task.get(key)
    return found if isinstance(found, list) else []


def cases(task: Task) -> list[list[Any]]:
    """Return the alternatives of a SWITCH, the default last."""
    found = task.get("decisionCases")
    chosen = found.values() if isinstance(found, Mapping) else ()
    return [*(case for case in chosen if isinstance(case, list)), inner(task, "defaultCase")]


def walk(tasks: object, place: Place = ()) -> Iterator[tuple[Task, Place]]:
    """List the tasks of a definition, those inside of others too, in the order they are written."""
    for task in tasks if isinstance(tasks, list) else []:
        if not isinstance(task, Mapping):
            continue
        yield task, place
        for index, branch in enumerate(inner(task, "forkTasks")):
            yield from walk(branch, (*place, (reference(task), index)))
        for case in cases(task):
            yield from walk(case, place)
        yield from walk(inner(task, "loopOver"), place)
        yield from walk(inner(task, WITHIN), place)


def changed(tasks: list[Any], change: Callable[[Task], Task]) -> list[Any]:
    """Return tasks as ``change`` makes them, those inside of others first."""
    return [_changed(task, change) if isinstance(task, Mapping) else task for task in tasks]


def _changed(task: Task, change: Callable[[Task], Task]) -> Task:
    inside: dict[str, Any] = {
        key: changed(inner(task, key), change) for key in ("defaultCase", "loopOver") if key in task
    }
    if "forkTasks" in task:
        inside["forkTasks"] = [
            changed(branch, change) if isinstance(branch, list) else branch
            for branch in inner(task, "forkTasks")
        ]
    if isinstance(found := task.get("decisionCases"), Mapping):
        inside["decisionCases"] = {
            key: changed(case, change) if isinstance(case, list) else case
            for key, case in found.items()
        }
    # What is not as it should be stays as it is: other checks name it.
    kept = {key: value for key, value in inside.items() if value or not task[key]}
    return change({**task, **kept})


@dataclass(frozen=True, slots=True)
class WorkspaceTracing:
    """The tasks of one definition by reference name; ``writers`` and ``readers`` by task name."""

    tasks: Mapping[str, Task]
    writers: Collection[str]
    readers: Collection[str] = ()
    workflow: Mapping[str, Any] = field(default_factory=dict)
    """What is known of ``${workflow...}``."""

    @classmethod
    def of(
        cls,
        definition: Task,
        writers: Collection[str],
        readers: Collection[str] = (),
        given: Mapping[str, Any] | None = None,
    ) -> WorkspaceTracing:
        """Read a definition; ``given`` is the workflow's input, where it is known already."""
        tasks = {reference(task): task for task, _ in walk(definition.get("tasks"))}
        known = {
            "input": {**_mapping(definition.get("inputTemplate")), **(given or {})},
            "workflowType": definition.get("name"),
            "version": definition.get("version"),
        }
        if not any(task.get("type") == "SET_VARIABLE" for task in tasks.values()):
            known["variables"] = definition.get("variables")
        return cls(tasks, writers, readers, known)

    def target(self, task: Task) -> Target | None:
        """Write out repository and branch; None when the definition does not say enough."""
        return self._target(task, len(self.tasks))

    def _target(self, task: Task, left: int) -> Target | None:
        workspace = _workspace(task)
        if isinstance(workspace, Mapping):
            parts = [self._part(workspace.get(key), key, left) for key in ("repository", "branch")]
        elif path := whole(workspace):
            parts = [
                self._part(f"${{{path}.{key}}}", key, left) for key in ("repository", "branch")
            ]
        else:
            return None
        return (parts[0], parts[1]) if parts[0] and parts[1] else None

    def _part(self, value: object, key: str, left: int) -> str | None:
        """Follow one value to where it comes from: a task passes its workspace on (I3)."""
        if not isinstance(value, str) or not value:
            return None
        if (path := whole(value)) and (followed := self._followed(path.split("."), key, left)):
            return followed
        return _EXPRESSION.sub(lambda found: self._known(found[1]), value)

    def _followed(self, path: list[str], key: str, left: int) -> str | None:
        root, *rest = path
        task = self.tasks.get(root)
        if task is None or not left:
            return None
        if task.get("type") == "JOIN" and rest[:1] == ["output"] and rest[2:3] == ["workspace"]:
            return self._followed([rest[1], "output", *rest[2:]], key, left - 1)
        if tuple(rest[:2]) not in _PASSED_ON or rest[2:] != [key]:
            return None
        target = self._target(task, left - 1)
        return target and target[("repository", "branch").index(key)]

    def _known(self, path: str) -> str:
        """Fill in what is known of the workflow; leave every other expression as it is."""
        root, *rest = path.split(".")
        found: object = self.workflow if root == "workflow" else None
        for key in rest:
            found = found.get(key) if isinstance(found, Mapping) else None
        return found if isinstance(found, str) and found else f"${{{path}}}"

    def source(self, task: Task) -> Source:
        """Return which writer's output a task reads."""
        return self._source(task, len(self.tasks))

    def _source(self, task: Task, left: int) -> Source:
        workspace = _workspace(task)
        text = workspace.get("ref") if isinstance(workspace, Mapping) else workspace
        if not isinstance(text, str) or not text:
            return Untraceable("nothing")
        if "${" not in text:
            return GivenCommit()
        path = whole(text)
        if path is None or not left:
            return Untraceable(text)
        root, *rest = path.split(".")
        if isinstance(workspace, Mapping):
            if rest[-1:] != ["ref"] and root != "workflow":
                return Untraceable(text)
            rest = rest[:-1]
        return self._from(root, rest, left) or Untraceable(text)

    def _from(self, root: str, rest: list[str], left: int) -> Source | None:
        """Follow an expression that names a workspace to the writer whose output it is."""
        if root == "workflow":
            return GivenCommit() if rest[:1] == ["input"] else None
        task = self.tasks.get(root, {})
        if task.get("type") == "JOIN" and rest[:1] == ["output"] and rest[2:] == ["workspace"]:
            return self._from(rest[1], ["output", "workspace"], left - 1)
        if rest == ["output", "workspace"] and task.get("name") in self.writers:
            return OutputOf(root)
        read_only = rest == ["output", "workspace"] and task.get("name") in self.readers
        if read_only or (task and rest == ["input", "workspace"]):
            return self._source(task, left - 1)
        return None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _workspace(task: Task) -> object:
    given = task.get("inputParameters")
    return given.get("workspace") if isinstance(given, Mapping) else None


def whole(text: object) -> str | None:
    """Return what an expression that is the whole text names."""
    found = _EXPRESSION.fullmatch(text.strip()) if isinstance(text, str) else None
    return found[1] if found else None
