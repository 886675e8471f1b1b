"""A WorkflowDef as a checked, frozen value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from perago.workflow.controls import TimeoutAction
from perago.workflow.order import Order
from perago.workflow.tasks import SimpleTask, Tasks, every


@dataclass(frozen=True, slots=True)
class Workflow:
    """A WorkflowDef that can run here."""

    name: str
    version: int
    tasks: Tasks
    order: Order
    description: str = ""
    input_parameters: tuple[str, ...] = ()
    input_template: Mapping[str, object] = field(default_factory=dict)
    output_parameters: Mapping[str, object] = field(default_factory=dict)
    variables: Mapping[str, object] = field(default_factory=dict)
    timeout_seconds: float = 0
    timeout_policy: TimeoutAction = TimeoutAction.ALERT_ONLY

    def started_with(self, given: Mapping[str, object]) -> dict[str, object]:
        """Return the input of a run: what was given, over the template."""
        return {**self.input_template, **given}

    def simple_tasks(self) -> Iterator[SimpleTask]:
        """Walk the tasks that executors run."""
        return (task for task in every(self.tasks) if isinstance(task, SimpleTask))
