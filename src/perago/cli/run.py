"""``perago run``: a workflow or a task on this machine, without any server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perago.cli.exits import FAILED, INTERRUPTED
from perago.cli.screen import AsJson, block, emit, fields, plain, say

if TYPE_CHECKING:
    from perago.brokers.local import RunRecord


def run(
    context: typer.Context,
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="WORKFLOW|TASK",
            help="A workflow file (.json), module:workflow built in Python, or a module with one "
            "task (module:task among several).",
            show_default=False,
        ),
    ] = None,
    modules: Annotated[
        list[str] | None,
        typer.Argument(metavar="MODULE...", help="Modules with the workflow's tasks."),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Go on with a run that crashed, stopped or failed."),
    ] = None,
    repository: Annotated[
        str | None,
        typer.Option(
            "--repo",
            "-r",
            help="Repository; on the embedded store it is made when it does not exist.",
        ),
    ] = None,
    branch: Annotated[str, typer.Option("--branch", "-b", help="Branch to publish on.")] = "main",
    source: Annotated[
        Path | None,
        typer.Option("--from", help="Commit the files of this directory first, as the input."),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", metavar="KEY=VALUE", help="Workflow input; may be JSON."),
    ] = None,
    input_file: Annotated[Path | None, typer.Option(help="JSON file with workflow input.")] = None,
    params: Annotated[str | None, typer.Option(help="JSON params of a single task.")] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Executors at once.", min=1)] = 2,
    execution_mode: Annotated[
        str | None, typer.Option(help="process, or thread to debug in one process.")
    ] = None,
    store: Annotated[
        str,
        typer.Option(help="embedded, or lakefs: the server that is configured (see .env)."),
    ] = "embedded",
    as_json: AsJson = False,
) -> None:
    """Run a workflow as transactions on the embedded store.

    Kill it whenever you like: nothing half-done is ever visible, and --resume goes on.
    """
    from perago.cli.seed import chosen_store, read_input, workspace_for
    from perago.cli.session import Session
    from perago.cli.workflow_source import load_source
    from perago.errors import UsageError
    from perago.process.killing import KillAt
    from perago.settings import keys_withheld
    from perago.wiring import home_of, open_store, settings_here

    settings = settings_here()
    context.with_resource(keys_withheld(os.environ))
    KillAt.from_environment(os.environ)  # A mistake in it is told before anything is made.
    mode = execution_mode or settings.execution_mode
    if mode not in {"process", "thread"}:
        raise UsageError(f"--execution-mode {mode!r}", remedy="use process or thread")
    kind = chosen_store(store)
    session = Session(home_of(settings), settings, jobs, mode, kind, as_json)
    if resume is not None:
        if target is not None:
            raise UsageError("--resume takes no workflow", remedy="the run remembers its own")
        session.home.existing()
        ended = session.resume(resume)
    elif target is None:
        raise UsageError("nothing to run", remedy="name a workflow file or a task module")
    else:
        found = load_source(target, modules or [])
        given = read_input(values or [], input_file, params)
        if found.single_task and (extra := sorted(given.keys() - {"params", "workspace"})):
            raise UsageError(
                f"a single task has no input {extra[0]!r}",
                remedy="give its params as --params JSON",
            )
        if "workspace" not in given and found.needs_workspace:
            opened = open_store(session.home, settings, kind)
            given["workspace"] = workspace_for(opened, found, repository, branch, source)
        ended = session.start(found, given)
    conclude(ended, as_json)


def _place(ended: RunRecord) -> str:
    """Name the store and the repository that a run was on, where they are not the usual ones."""
    if ended.store == "embedded":
        return ""
    given = ended.input.get("workspace")
    name = given.get("repository", "") if isinstance(given, dict) else ""
    return f" --store {plain(ended.store)} --repo {plain(name)}"


def conclude(ended: RunRecord, as_json: bool) -> None:
    """Say how it ended, and what can be done next."""
    if as_json:
        emit(
            {
                "run": ended.id,
                "status": ended.status,
                "reason": ended.reason,
                "output": ended.output,
            }
        )
    elif ended.status == "COMPLETED":
        say(f"\n[green]COMPLETED[/green]  run {plain(ended.id)}")
        shown = {name: value for name, value in ended.output.items() if name != "workspace"}
        fields({plain(name): plain(value) for name, value in shown.items() if value is not None})
        log = f"perago log{_place(ended)}"
        say(f"\n[dim]look:[/dim] {log}    [dim]or:[/dim] perago inspect {ended.id[:8]}")
    elif ended.status == "RUNNING":
        say(f"\n[yellow]stopped[/yellow]; go on with: perago run --resume {ended.id}")
    else:
        say(f"\n[red]{plain(ended.status)}[/red]  {block(ended.reason)}")
        say(f"[dim]look:[/dim] perago inspect {ended.id[:8]}")
        say(f"[dim]when it is mended, go on with:[/dim] perago run --resume {ended.id}")
    if ended.status == "RUNNING":
        raise typer.Exit(INTERRUPTED)
    if ended.status != "COMPLETED":
        raise typer.Exit(FAILED)
