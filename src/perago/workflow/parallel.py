"""W9 before anything runs: two writers of one branch side by side in a workflow definition. Pure.

A registered workflow gets its input later, so targets are compared as they are written: two tasks
that take the same expression, or one another's output, write the same branch whatever it will be.
Any kind of task may be in the definition; only SIMPLE tasks write.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from perago.errors import WorkflowDefinitionError
from perago.workflow.tracing import Place, Target, Tracing, reference, walk
from perago.workflow.writers import clash

REMEDY = "run them one after the other, give each its own branch, or make one read-only"


@dataclass(frozen=True, slots=True)
class _Writer:
    name: str
    place: Place
    target: Target


def refuse_writers_side_by_side(
    definition: Mapping[str, Any], writers: Collection[str], source: str
) -> None:
    """Refuse a workflow in which two tasks of ``writers`` write one branch in parallel."""
    tasks = {reference(task): task for task, _ in walk(definition.get("tasks"))}
    tracing = Tracing(tasks, writers)
    found = [
        _Writer(reference(task), place, target)
        for task, place in walk(definition.get("tasks"))
        if task.get("name") in writers and (target := tracing.target(task)) is not None
    ]
    for one, other in combinations(found, 2):
        if one.target == other.target and _parallel(one.place, other.place):
            raise WorkflowDefinitionError(
                f"{source}: {clash(one.name, other.name, one.target)}", remedy=REMEDY
            )


def _parallel(one: Place, other: Place) -> bool:
    """Tell whether two tasks are in different branches of one fork."""
    branches = dict(one)
    return any(branches.get(fork, index) != index for fork, index in other)
