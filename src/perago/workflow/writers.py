"""W9: two writers of one branch never run side by side.

Before a run the target of each writable task is worked out from the definition; what only the
run can tell is looked at again when a task is scheduled.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import combinations

from perago.errors import WorkflowDefinitionError
from perago.workflow.definition import Workflow
from perago.workflow.expressions import UNKNOWN, Expression, Unknown, lookup, resolve
from perago.workflow.records import TaskRecord
from perago.workflow.scope import WORKFLOW
from perago.workflow.tasks import JoinTask, SimpleTask, SwitchTask, WorkflowTask, every

Target = tuple[str, str]
"""Repository and branch."""

_REMEDY = "run them one after the other, give each its own branch, or make one read-only"


def refuse_parallel_writers(
    workflow: Workflow,
    given: Mapping[str, object],
    writers: Collection[str],
    source: str = "workflow",
) -> None:
    """Refuse a workflow in which, on this input, parallel tasks write one branch.

    ``writers`` are the names of task definitions that write their workspace.
    """
    targets = planned_targets(workflow, workflow.started_with(given))
    writing = [task for task in workflow.simple_tasks() if task.name in writers]
    for one, other in combinations(writing, 2):
        target = targets.get(one.reference_name)
        if target is None or target != targets.get(other.reference_name):
            continue
        if workflow.order.parallel(one.reference_name, other.reference_name):
            raise WorkflowDefinitionError(
                f"{source}: {clash(one.reference_name, other.reference_name, target)}",
                remedy=_REMEDY,
            )


def clash(one: str, other: str, target: Target) -> str:
    """Say who writes what at the same time."""
    repository, branch = target
    return (
        f"tasks {one!r} and {other!r} may run at the same time and both write branch"
        f" {branch!r} of repository {repository!r}"
    )


def parallel_writer(
    workflow: Workflow,
    started: Iterable[TaskRecord],
    writers: Collection[str],
    task: SimpleTask,
    task_input: Mapping[str, object],
) -> str | None:
    """Name a clash of a task that is about to be scheduled with one that was before (W9)."""
    target = target_of(task_input)
    if task.name not in writers or target is None:
        return None
    for other in started:
        if (
            other.task_def_name in writers
            and target_of(other.input) == target
            and workflow.order.parallel(task.reference_name, other.reference_name)
        ):
            return clash(other.reference_name, task.reference_name, target)
    return None


def target_of(task_input: object) -> Target | None:
    """Read repository and branch of a task input; None when they are not (yet) known."""
    repository = lookup(task_input, ("workspace", "repository"))
    branch = lookup(task_input, ("workspace", "branch"))
    if isinstance(repository, str) and isinstance(branch, str):
        return repository, branch
    return None


def planned_targets(workflow: Workflow, given: Mapping[str, object]) -> dict[str, Target]:
    """Work out the target of each SIMPLE task that the definition and the input fix."""
    document: dict[str, object] = {
        WORKFLOW: {
            "input": given,
            "variables": workflow.variables,
            "workflowType": workflow.name,
            "version": workflow.version,
        }
    }
    targets: dict[str, Target] = {}
    for task in every(workflow.tasks):
        planned = _planned(task, document)
        document[task.reference_name] = planned
        target = target_of(planned["input"])
        if isinstance(task, SimpleTask) and target is not None:
            targets[task.reference_name] = target
    return targets


def _planned(task: WorkflowTask, document: Mapping[str, object]) -> dict[str, object]:
    """Foresee what a task will show: its output workspace is its input workspace (I3)."""
    match task:
        case SimpleTask():
            planned = resolve(task.input, _foresee(document))
            workspace = lookup(planned, ("workspace",))
            return {"input": planned, "output": _Foreseen({"workspace": workspace})}
        case JoinTask():
            outputs = {name: lookup(document, (name, "output")) for name in task.join_on}
            return {"input": {}, "output": outputs}
        case SwitchTask():
            return {"input": resolve(task.input, _foresee(document)), "output": UNKNOWN}
        case _:
            return {"input": {}, "output": {}}


class _Foreseen(dict[str, object]):
    """An object of which some keys are known: every other key is unknown, not missing."""

    def get(self, key: str, default: object = None) -> object:
        return super().get(key, UNKNOWN if default is None else default)


def _foresee(document: Mapping[str, object]) -> Callable[[Expression], object]:
    def read(expression: Expression) -> object:
        root, *rest = expression.path
        shown = document.get(str(root), UNKNOWN)
        if isinstance(shown, dict) and rest and rest[0] not in shown:
            return UNKNOWN  # its status, times and id exist only in a run
        return UNKNOWN if isinstance(shown, Unknown) else lookup(shown, tuple(rest))

    return read
