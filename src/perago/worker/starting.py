"""What must be right before a worker begins (W2); each refusal is one sentence."""

from __future__ import annotations

from collections.abc import Mapping

from perago.brokers.conductor.client import ConductorClient
from perago.errors import RuntimeConfigError
from perago.tasks.definition import TaskDefinition


def refuse_unregistered(client: ConductorClient, tasks: Mapping[str, TaskDefinition]) -> None:
    """Refuse tasks that Conductor does not know: they could never be scheduled."""
    missing = [name for name in sorted(tasks) if client.taskdef(name) is None]
    if missing:
        names = ", ".join(map(repr, missing))
        modules = " ".join(sorted({tasks[name].body.source for name in missing}))
        raise RuntimeConfigError(
            f"Conductor does not know the task{'s' if missing[1:] else ''} {names}",
            remedy=f"run: perago register {modules}",
        )
