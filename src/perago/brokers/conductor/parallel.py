"""W9 before anything runs: two writers of one branch side by side in a workflow definition. Pure.

A registered workflow gets its input later, so targets are compared as they are written: two tasks
that take the same expression, or one another's output, write the same branch whatever it will be.
Any kind of task may be in the definition; only SIMPLE tasks write.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from perago.brokers.local.writers import clash
from perago.errors import WorkflowDefinitionError

_EXPRESSION = re.compile(r"\$\{\s*([^{}]+?)\s*\}")
_PASSED_ON = ("output", "workspace"), ("input", "workspace")
REMEDY = "run them one behind the other, give each its own branch, or make one read-only"

Place = tuple[tuple[str, int], ...]
"""Through which fork, into which of its branches."""


@dataclass(frozen=True, slots=True)
class _Writer:
    name: str
    place: Place
    target: tuple[str, str]


def refuse_writers_side_by_side(
    definition: Mapping[str, Any], writers: Collection[str], source: str
) -> None:
    """Refuse a workflow in which two tasks of ``writers`` write one branch in parallel."""
    tasks = {str(task.get("taskReferenceName")): task for task, _ in walk(definition.get("tasks"))}
    found = [
        _Writer(str(task.get("taskReferenceName")), place, target)
        for task, place in walk(definition.get("tasks"))
        if task.get("name") in writers and (target := _target(task, tasks)) is not None
    ]
    for one, other in combinations(found, 2):
        if one.target == other.target and _parallel(one.place, other.place):
            raise WorkflowDefinitionError(
                f"{source}: {clash(one.name, other.name, one.target)}", remedy=REMEDY
            )


def walk(tasks: Any, place: Place = ()) -> Iterator[tuple[Mapping[str, Any], Place]]:
    """List the tasks of a definition, those inside of others too, in the order they are written."""
    for task in tasks if isinstance(tasks, list) else []:
        if not isinstance(task, Mapping):
            continue
        yield task, place
        name = str(task.get("taskReferenceName"))
        for index, branch in enumerate(task.get("forkTasks") or []):
            yield from walk(branch, (*place, (name, index)))
        cases = task.get("decisionCases")
        for inner in cases.values() if isinstance(cases, Mapping) else []:
            yield from walk(inner, place)
        yield from walk(task.get("defaultCase"), place)
        yield from walk(task.get("loopOver"), place)


def _parallel(one: Place, other: Place) -> bool:
    """Tell whether two tasks are in different branches of one fork."""
    branches = dict(one)
    return any(branches.get(fork, index) != index for fork, index in other)


def _target(
    task: Mapping[str, Any], tasks: Mapping[str, Mapping[str, Any]], depth: int = 0
) -> tuple[str, str] | None:
    """Write out repository and branch; None when the definition does not say enough."""
    given = task.get("inputParameters")
    workspace = given.get("workspace") if isinstance(given, Mapping) else None
    if isinstance(workspace, Mapping):
        parts = [_part(workspace.get(key), key, tasks, depth) for key in ("repository", "branch")]
    elif isinstance(workspace, str) and (path := _path(workspace)):
        parts = [_part(f"${{{path}.{key}}}", key, tasks, depth) for key in ("repository", "branch")]
    else:
        return None
    return (parts[0], parts[1]) if parts[0] and parts[1] else None


def _part(value: Any, key: str, tasks: Mapping[str, Mapping[str, Any]], depth: int) -> str | None:
    """Follow one value to where it comes from: a task passes its workspace on unchanged (I3)."""
    if not isinstance(value, str) or not value:
        return None
    path = _path(value)
    if path is None:
        return value
    root, *rest = path.split(".")
    earlier = tasks.get(root)
    if earlier is not None and tuple(rest[:2]) in _PASSED_ON and rest[2:] == [key]:
        followed = _target(earlier, tasks, depth + 1) if depth < len(tasks) else None
        if followed is not None:
            return followed[0] if key == "repository" else followed[1]
    return f"${{{path}}}"


def _path(text: str) -> str | None:
    """Return what an expression that is the whole text names."""
    found = _EXPRESSION.fullmatch(text.strip())
    return found[1] if found else None
