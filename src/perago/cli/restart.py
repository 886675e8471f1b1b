"""``perago restart``: the same workflow once more, from the current head."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perago.cli.screen import AsJson, plain
from perago.cli.steering import Id
from perago.errors import UsageError

if TYPE_CHECKING:
    from perago.brokers.local import RunRecord
    from perago.cli.steering import ConductorWorkflow, LocalWorkflow
    from perago.ports import Store
    from perago.settings import Settings
    from perago.workflow.progress import WorkflowExecution


def restart(
    context: typer.Context,
    workflow: Id,
    wait: Annotated[
        bool, typer.Option("--wait", help="On Conductor: follow the new one until it ends.")
    ] = False,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", help="Of a local run: executors at once.", min=1)
    ] = 2,
    as_json: AsJson = False,
) -> None:
    """Start a workflow again, as a new one, from the current heads of its branches.

    All other input is the same. A local run is run here, one on Conductor is submitted.
    """
    from perago.app.local import settings_here
    from perago.cli.steering import ConductorWorkflow, LocalWorkflow, steered
    from perago.settings import keys_withheld

    settings = settings_here()
    with steered(settings, workflow) as found:
        before = found.read()
        if not before.over:
            raise UsageError(
                f"{before.id} is {before.status}: two of it would work on one branch",
                remedy=f"end it first, with: perago cancel {before.id}",
            )
        if isinstance(found, ConductorWorkflow):
            _on_conductor(found, before, settings, wait=wait, as_json=as_json)
        elif isinstance(found, LocalWorkflow):
            context.with_resource(keys_withheld(os.environ))
            _here(found, before, settings, jobs, as_json=as_json)


def _on_conductor(
    found: ConductorWorkflow,
    before: WorkflowExecution,
    settings: Settings,
    *,
    wait: bool,
    as_json: bool,
) -> None:
    from perago.app.local import lakefs_of
    from perago.cli.submit import start_on_conductor

    given = _renewed(before, lambda: lakefs_of(settings))
    start_on_conductor(
        found.client, before.workflow, before.version, given, wait=wait, as_json=as_json
    )


def _here(
    found: LocalWorkflow, before: WorkflowExecution, settings: Settings, jobs: int, *, as_json: bool
) -> None:
    from perago.app.local import home_of, open_store
    from perago.cli.ending import conclude
    from perago.cli.seed import chosen_store
    from perago.cli.session import Session
    from perago.cli.workflow_source import WorkflowSource
    from perago.tasks.loading import load_tasks

    run: RunRecord = found.run
    kind = chosen_store(run.store)
    session = Session(found.home, settings, jobs, settings.execution_mode, kind, as_json)
    given = _renewed(before, lambda: open_store(found.home, settings, kind))
    name = f"workflow of run {plain(run.id)}"
    source = WorkflowSource(run.workflow, name, run.modules, load_tasks(run.modules))
    ended = session.start(source, given)
    conclude(ended, home_of(settings), f"perago restart {ended.id}", [], as_json=as_json)


def _renewed(before: WorkflowExecution, opened: Callable[[], Store]) -> dict[str, Any]:
    """Take the input of a workflow, with its workspaces at the heads of their branches."""
    from perago.workflow.progress import place_of, renewed

    places = {place for value in before.input.values() if (place := place_of(value))}
    if not places:
        return dict(before.input)
    store = opened()
    return renewed(before.input, {place: store.head(*place).id for place in places})
