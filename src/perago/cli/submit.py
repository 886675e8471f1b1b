"""``perago submit``: start a registered workflow on Conductor."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perago.cli.screen import AsJson, emit, plain, say
from perago.errors import BrokerUnavailableError, UsageError

if TYPE_CHECKING:
    from perago.brokers.conductor.client import ConductorClient
    from perago.settings import Settings


def submit(
    workflow: Annotated[
        str,
        typer.Argument(
            metavar="WORKFLOW",
            help="The name of a registered workflow, or its file (.json).",
            show_default=False,
        ),
    ],
    values: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", metavar="KEY=VALUE", help="Workflow input; may be JSON."),
    ] = None,
    input_file: Annotated[Path | None, typer.Option(help="JSON file with workflow input.")] = None,
    repository: Annotated[
        str | None,
        typer.Option("--repo", "-r", help="Repository on lakeFS whose head is the input."),
    ] = None,
    branch: Annotated[
        str, typer.Option("--branch", "-b", help="Branch of it, to publish on.")
    ] = "main",
    wait: Annotated[bool, typer.Option("--wait", help="Follow it until it ends.")] = False,
    as_json: AsJson = False,
) -> None:
    """Start a workflow on the configured Conductor, on the head of a branch.

    Workers run it: perago start. Follow it with perago watch, end it with perago cancel.
    """
    from perago.app.local import conductor_of, settings_here
    from perago.cli.seed import read_input

    settings = settings_here()
    given = read_input(values or [], input_file, None)
    client = conductor_of(settings)
    try:
        definition = _registered(client, workflow)
        if repository is not None:
            given["workspace"] = _head(settings, repository, branch)
        elif "workspace" not in given and "${workflow.input.workspace" in json.dumps(definition):
            raise UsageError(
                f"workflow {definition['name']!r} works on a workspace",
                remedy="name its repository with --repo, or give --input workspace=JSON",
            )
        name, version = str(definition["name"]), int(definition.get("version") or 1)
        start_on_conductor(client, name, version, given, wait=wait, as_json=as_json)
    finally:
        client.close()


def start_on_conductor(
    client: ConductorClient,
    name: str,
    version: int,
    given: Mapping[str, Any],
    *,
    wait: bool,
    as_json: bool,
) -> None:
    """Start it, then say how to follow it, or follow it."""
    try:
        workflow_id = client.start_workflow(name, given, version)
    except BrokerUnavailableError as error:
        raise BrokerUnavailableError(
            f"{error.message}; it may have been started all the same",
            remedy="look on the server whether it runs before you repeat it",
        ) from None
    if wait:
        from perago.cli.steering import ConductorWorkflow
        from perago.cli.watch import follow_to_the_end

        follow_to_the_end(ConductorWorkflow(client, workflow_id), as_json=as_json)
        return
    if as_json:
        emit({"id": workflow_id, "workflow": name, "version": version, "input": dict(given)})
        return
    say(f"[bold]{plain(name)}[/bold]  workflow {plain(workflow_id)} is started")
    say(f"[dim]follow it:[/dim] perago watch {plain(workflow_id)}")


def _registered(client: ConductorClient, workflow: str) -> Mapping[str, Any]:
    """Read the definition that the server has; a file must be what is registered."""
    from perago.brokers.conductor.registration import registration
    from perago.cli.workflow_files import workflow_file

    if not workflow.endswith(".json"):
        found = client.workflow(workflow)
        if found is None:
            raise UsageError(
                f"Conductor knows no workflow {workflow!r}",
                remedy="register it with: perago register MODULE WORKFLOW.json",
            )
        return found
    wanted = workflow_file(Path(workflow))
    name, version = str(wanted.get("name")), wanted.get("version") or 1
    found = client.workflow(name, version) if isinstance(version, int) else None
    state = registration("workflow", name, wanted, found).state
    if found is None or state != "same":
        problem = "is not registered" if found is None else "is not as it is registered"
        raise UsageError(f"{workflow} {problem}", remedy=f"run: perago register MODULE {workflow}")
    return found


def _head(settings: Settings, repository: str, branch: str) -> dict[str, str]:
    from contextlib import closing

    from perago.app.local import lakefs_of
    from perago.cli.seed import workspace_at

    with closing(lakefs_of(settings)) as store:
        return workspace_at(store, repository, branch)
