"""W9: two writers of one branch never run side by side. Pure.

Before a workflow is registered or run, the target of each writer is read off the definition: two
tasks that take the same expression, or one another's output, write the same branch whatever it
will be. What only a run can tell is looked at again when a task is scheduled.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import combinations
from typing import Any

from perago.errors import WorkflowDefinitionError
from perago.workflow.definition import Workflow
from perago.workflow.expressions import lookup
from perago.workflow.nesting import unfolded
from perago.workflow.order import order_of
from perago.workflow.records import TaskRecord
from perago.workflow.tasks import SimpleTask
from perago.workflow.tracing import Target, WorkspaceTracing, reference

_REMEDY = "run them one after the other, give each its own branch, or make one read-only"


def refuse_parallel_writers(
    definition: Mapping[str, Any],
    writers: Collection[str],
    source: str = "workflow",
    given: Mapping[str, Any] | None = None,
) -> None:
    """Refuse a workflow in which parallel tasks write one branch.

    ``writers`` are the names of tasks that write their workspace; ``given`` is the workflow's
    input, where it is known already.
    """
    definition = unfolded(definition)
    targets = planned_targets(definition, writers, given)
    order = order_of(definition.get("tasks"))
    for (one, target), (other, another) in combinations(targets.items(), 2):
        if target == another and order.parallel(one, other):
            raise WorkflowDefinitionError(f"{source}: {_clash(one, other, target)}", remedy=_REMEDY)


def planned_targets(
    definition: Mapping[str, Any],
    writers: Collection[str],
    given: Mapping[str, Any] | None = None,
) -> dict[str, Target]:
    """Work out the target of each writer as far as the definition and the input say."""
    tracing = WorkspaceTracing.of(definition, writers, given=given)
    writing = (task for task in tracing.tasks.values() if task.get("name") in writers)
    found = ((reference(task), tracing.target(task)) for task in writing)
    return {name: target for name, target in found if target is not None}


def parallel_writer(
    beside: Iterable[TaskRecord],
    writers: Collection[str],
    task: SimpleTask,
    task_input: Mapping[str, object],
) -> str | None:
    """Name a clash of a task that is about to be scheduled with work beside it (W9)."""
    target = _target_of(task_input)
    if task.name not in writers or target is None:
        return None
    for other in beside:
        if other.task_def_name in writers and _target_of(other.input) == target:
            return _clash(other.reference_name, task.reference_name, target)
    return None


def beside_step(
    workflow: Workflow, started: Iterable[TaskRecord], step: str, forks: Mapping[str, str]
) -> list[TaskRecord]:
    """Return the attempts of a run that may be under way at the same time as a step of it.

    ``forks`` has the tasks that are not in the definition, each with the dynamic fork it is of.
    """
    return [other for other in started if _parallel(workflow, step, other.step, forks)]


def _parallel(workflow: Workflow, one: str, other: str, forks: Mapping[str, str]) -> bool:
    """Return whether two tasks run side by side; those of a fork are where their fork is."""
    if one != other and one in forks and forks.get(one) == forks.get(other):
        return True
    return workflow.order.parallel(forks.get(one, one), forks.get(other, other))


def _target_of(task_input: object) -> Target | None:
    """Read repository and branch of a task input; None when they are not there."""
    repository = lookup(task_input, ("workspace", "repository"))
    branch = lookup(task_input, ("workspace", "branch"))
    if isinstance(repository, str) and isinstance(branch, str):
        return repository, branch
    return None


def _clash(one: str, other: str, target: Target) -> str:
    """Return who writes what at the same time."""
    repository, branch = target
    return (
        f"tasks {one!r} and {other!r} may run at the same time and both write branch"
        f" {branch!r} of repository {repository!r}"
    )
