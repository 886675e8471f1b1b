"""Workflows that are under way, here or on Conductor, behind one id."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Final, Protocol

import typer

from perago.brokers.conductor.executions import execution_of as conductor_execution
from perago.brokers.local import RunRecord, RunStatus
from perago.brokers.local.executions import family_execution as local_family
from perago.cli import completion
from perago.cli.choose import run_id_of
from perago.errors import UsageError
from perago.process.lock import held, run_lock
from perago.protocol.events import Event
from perago.workflow.progress import WorkflowExecution, WorkflowStep, news, published_by
from perago.workflow.records import left_to_people
from perago.workflow.subworkflow import CHILD_ID, KIND

if TYPE_CHECKING:
    from perago.app.local import Home
    from perago.brokers.conductor.client import ConductorClient
    from perago.cli.view import View
    from perago.settings import Settings

Id = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="A local run (its first characters are enough, 'last' is the newest one), or a "
        "workflow on Conductor.",
        show_default=False,
        autocompletion=completion.runs,
    ),
]
LOOK_SECONDS: Final = 1.0
_LOOKS_ALONE: Final = 3


class Steered(Protocol):
    """One workflow, wherever it runs."""

    where: str

    def read(self) -> WorkflowExecution:
        """Look at it now."""

    def end(self, reason: str) -> None:
        """End it, if it has not ended."""

    def told(self, step: WorkflowStep) -> Iterable[Event]:
        """Return what an attempt did to its branch."""

    def deserted(self) -> bool:
        """Return whether nothing is left that could take it further."""

    def waits_for_people(self) -> bool:
        """Return whether it is deserted because a person has to do a step."""


@dataclass(slots=True)
class ConductorWorkflow:
    """A workflow of the configured server."""

    client: ConductorClient
    workflow_id: str
    where: str = "conductor"

    def read(self) -> WorkflowExecution:
        found = self.client.execution(self.workflow_id)
        if found is None:
            raise UsageError(
                f"there is no run {self.workflow_id!r} here, and Conductor knows no such workflow",
                remedy="'perago runs' lists local runs; on Conductor, give the whole id",
            )
        return self._with_children(conductor_execution(found))

    def _with_children(self, found: WorkflowExecution) -> WorkflowExecution:
        """Add the steps of sub workflows, each named after the steps that lead to it."""
        inside: list[WorkflowStep] = []
        for step in found.steps:
            child_id = step.output.get(CHILD_ID) if step.kind == KIND else None
            child = self.client.execution(str(child_id)) if child_id else None
            if child is not None:
                deeper = self._with_children(conductor_execution(child)).steps
                inside += [replace(each, name=f"{step.name}/{each.name}") for each in deeper]
        if not inside:
            return found
        # In the order in which they began, as those of a local run.
        steps = sorted((*found.steps, *inside), key=lambda step: step.started_at or math.inf)
        return replace(found, steps=tuple(steps))

    def end(self, reason: str) -> None:
        self.client.terminate(self.workflow_id, reason)

    def told(self, step: WorkflowStep) -> Iterable[Event]:
        return published_by(step)

    def deserted(self) -> bool:
        return False

    def waits_for_people(self) -> bool:
        return False


@dataclass(slots=True)
class LocalWorkflow:
    """A run of this home."""

    home: Home
    run: RunRecord
    where: str = "local"
    _alone: int = 0

    def read(self) -> WorkflowExecution:
        state = self.home.state
        family = state.family(self.run.id)
        self.run = family[0]
        return local_family(family, {run.id: state.tasks(run.id) for run in family}, time.time())

    def end(self, reason: str) -> None:
        self.home.state.terminate(self.run.id, reason, time.time())

    def told(self, step: WorkflowStep) -> Iterable[Event]:
        """Read the event log: it knows more than the two ends of an attempt."""
        events = self.home.events.of_execution(step.execution_id)
        return [each.event for each in events]

    def deserted(self) -> bool:
        """Look for the process that drives it; one that begins needs a moment for its lock."""
        root = self.home.state.root(self.run)
        driven = held(run_lock(self.home.locks, root.id))
        self._alone = 0 if driven else self._alone + 1
        return self.run.status is RunStatus.RUNNING and self._alone >= _LOOKS_ALONE

    def waits_for_people(self) -> bool:
        return left_to_people(self.home.state.family_tasks(self.run.id))


@contextmanager
def steered(settings: Settings, given: str) -> Iterator[Steered]:
    """Find a workflow by its id: here first, then on the configured Conductor."""
    from perago.app.local import conductor_of, home_of

    home = home_of(settings)
    try:
        if (run := _local(home, run_id_of(home, given))) is not None:
            yield LocalWorkflow(home, run)
            return
    finally:
        home.close()
    if settings.conductor is None:
        raise UsageError(
            f"there is no run {given!r} here, and Conductor is not configured",
            remedy="'perago runs' lists local runs; for Conductor, set CONDUCTOR_SERVER_URL",
        )
    client = conductor_of(settings)
    try:
        yield ConductorWorkflow(client, given)
    finally:
        client.close()


def _local(home: Home, given: str) -> RunRecord | None:
    """Find a run of this home by the beginning of its id; several are a mistake."""
    if not home.path.is_dir() or not given:
        return None
    begun = [run for run in home.state.runs(limit=1_000_000) if run.id.startswith(given)]
    return home.state.run(given) if begun else None


def follow(
    found: Steered, view: View, pause: Callable[[float], None] = time.sleep
) -> WorkflowExecution:
    """Show what happens until the workflow is over, or nothing is left to take it further."""
    before: WorkflowExecution | None = None
    with view:
        while True:
            now = found.read()
            for event in news(before, now, found.told):
                view(event)
            before = now
            if now.over or found.deserted():
                return now
            pause(LOOK_SECONDS)
