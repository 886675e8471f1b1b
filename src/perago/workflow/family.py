"""A run together with the runs of its sub workflows. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from perago.workflow.definition import Workflow
from perago.workflow.forking import kept
from perago.workflow.records import RunRecord, TaskRecord
from perago.workflow.tasks import WORK, TaskKind
from perago.workflow.writers import beside_step


@dataclass(frozen=True, slots=True)
class Family:
    """All runs of one tree, their attempts and their definitions, by the id of the run."""

    runs: tuple[RunRecord, ...] = ()
    tasks: Mapping[str, tuple[TaskRecord, ...]] = field(default_factory=dict)
    workflows: Mapping[str, Workflow] = field(default_factory=dict)

    def run(self, run_id: str) -> RunRecord | None:
        """Find one of them."""
        return next((run for run in self.runs if run.id == run_id), None)

    def child(self, task_id: str) -> RunRecord | None:
        """Find the run that an attempt of a SUB_WORKFLOW started."""
        return next((run for run in self.runs if run.parent_task == task_id), None)

    def path(self, run: RunRecord) -> str:
        """Name the steps that lead from the first run to this one."""
        parent = self.run(run.parent)
        step = next(
            (t for t in self.tasks.get(run.parent, ()) if t.task_id == run.parent_task), None
        )
        if parent is None or step is None:
            return ""
        above = self.path(parent)
        return f"{above}/{step.reference_name}" if above else step.reference_name

    def every_task(self) -> list[TaskRecord]:
        """Return the attempts of all runs."""
        return [task for run in self.runs for task in self.tasks.get(run.id, ())]

    def work_in(self, task: TaskRecord) -> Iterator[TaskRecord]:
        """List the attempts that are somebody's work: this one, or those of the run it started."""
        if task.kind in WORK:
            yield task
        elif task.kind is TaskKind.SUB_WORKFLOW and (child := self.child(task.task_id)):
            for inner in self.tasks.get(child.id, ()):
                yield from self.work_in(inner)

    def beside(self, run: RunRecord) -> Iterator[TaskRecord]:
        """List the work of other runs that may be done at the same time as this whole run."""
        parent = self.run(run.parent)
        tasks = self.tasks.get(run.parent, ())
        step = next((task.step for task in tasks if task.task_id == run.parent_task), None)
        if parent is None or step is None:
            return
        for other in beside_step(self.workflows[parent.id], tasks, step, forks_of(tasks)):
            yield from self.work_in(other)
        yield from self.beside(parent)


def forks_of(tasks: tuple[TaskRecord, ...]) -> dict[str, str]:
    """Return the tasks of dynamic forks, each with its fork, by reference name."""
    return {
        name: task.step
        for task in tasks
        if task.kind is TaskKind.FORK_JOIN_DYNAMIC
        for name in kept(task.input).names
    }
