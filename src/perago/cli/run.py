"""``perago run``: a workflow or a task on this machine, without any server."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perago.cli.exits import FAILED, INTERRUPTED
from perago.cli.screen import AsJson, block, emit, fields, plain, say

if TYPE_CHECKING:
    from perago.brokers.local import RunRecord
    from perago.cli.workflow_source import WorkflowSource
    from perago.wiring import Home

_OF_A_NEW_RUN = {
    "target": "a workflow",
    "modules": "modules",
    "repository": "--repo",
    "branch": "--branch",
    "source": "--from",
    "values": "--input",
    "input_file": "--input-file",
    "params": "--params",
    "store": "--store",
}
"""What a run remembers; none of it can be changed by resuming."""
_OF_THE_WORKSPACE = ("repository", "branch", "source")


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
        typer.Option(metavar="RUN", help="Resume a run that crashed, stopped or failed."),
    ] = None,
    repository: Annotated[
        str | None, typer.Option("--repo", "-r", help="Repository; made when it does not exist.")
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
        _refuse_for_resume(context)
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
        _refuse_without_effect(context, found, given)
        if "workspace" not in given and found.needs_workspace:
            opened = open_store(session.home, settings, kind)
            given["workspace"] = workspace_for(opened, found, repository, branch, source)
        ended = session.start(found, given)
    _conclude(ended, as_json, home_of(settings), _again(context))


def _given(context: typer.Context, name: str) -> bool:
    """Tell whether somebody gave an option, even if it is the default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _refuse_for_resume(context: typer.Context) -> None:
    """Refuse what a resumed run would have to ignore."""
    from perago.errors import UsageError

    for name, shown in _OF_A_NEW_RUN.items():
        if _given(context, name):
            raise UsageError(
                f"--resume and {shown} contradict each other: a run keeps its workflow, its input "
                "and its workspace",
                remedy=f"leave out {shown} to resume the run, or --resume to start a new one",
            )


def _refuse_without_effect(
    context: typer.Context, found: WorkflowSource, given: dict[str, object]
) -> None:
    """Refuse options about a workspace that is not used, or is given as input."""
    from perago.errors import UsageError

    for name in _OF_THE_WORKSPACE:
        if not _given(context, name):
            continue
        shown = _OF_A_NEW_RUN[name]
        if "workspace" in given:
            raise UsageError(
                f"{shown} and the input 'workspace' contradict each other",
                remedy=f"leave out one of them: the input names repository, branch and commit, "
                f"{shown} makes Perago do it",
            )
        if not found.needs_workspace:
            raise UsageError(
                f"{shown} has no effect: no task here has a workspace",
                remedy=f"leave out {shown}, or declare workspace=WorkspaceSpec(...) in @task",
            )


def _again(context: typer.Context) -> str:
    """Return the command of a new run like this one; a resumed run does not know its file."""
    values = context.params
    words = ["perago", "run", values["target"] or "WORKFLOW", *(values["modules"] or ["MODULE"])]
    if values["target"] and not values["modules"]:
        words.pop()
    for name in ("store", "repository", "branch"):
        if _given(context, name):
            words += [_OF_A_NEW_RUN[name], str(values[name])]
    return shlex.join(words)


def _advise(ended: RunRecord, home: Home, again: str) -> None:
    """Say what helps: a resumed run has the same workflow and the same input."""
    from perago.cli.advice import failed_in, next_steps
    from perago.observe.attempts import story

    events = (home.events.of_execution(each) for each in home.events.executions(ended.id))
    phase = failed_in([story(each) for each in events if each])
    home.close()
    for text, command in next_steps(phase, ended.id, again):
        say(f"[dim]{plain(text)}[/dim]\n  {plain(command)}")


def _conclude(ended: RunRecord, as_json: bool, home: Home, again: str) -> None:
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
        say("\n[dim]look:[/dim] perago log    [dim]or:[/dim] perago inspect " + ended.id[:8])
    elif ended.status == "RUNNING":
        say(f"\n[yellow]stopped[/yellow]; resume with: perago run --resume {ended.id}")
    else:
        say(f"\n[red]{plain(ended.status)}[/red]  {block(ended.reason)}")
        say(f"[dim]look:[/dim] perago inspect {ended.id[:8]}")
        _advise(ended, home, again)
    if ended.status == "RUNNING":
        raise typer.Exit(INTERRUPTED)
    if ended.status != "COMPLETED":
        raise typer.Exit(FAILED)
