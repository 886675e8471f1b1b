"""``perago run``: a workflow or a task on this machine, without any server."""

from __future__ import annotations

import math
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perago.cli import completion
from perago.cli.ending import conclude, warn
from perago.cli.screen import AsJson

if TYPE_CHECKING:
    from perago.cli.workflow_source import WorkflowSource

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
        typer.Option(
            metavar="RUN",
            help="Resume a run that crashed, stopped or failed; 'last' is the newest one.",
            autocompletion=completion.runs,
        ),
    ] = None,
    repository: Annotated[
        str | None,
        typer.Option(
            "--repo",
            "-r",
            help="Repository; on the embedded store it is made when it does not exist.",
            autocompletion=completion.repositories,
        ),
    ] = None,
    branch: Annotated[
        str,
        typer.Option(
            "--branch", "-b", help="Branch to publish on.", autocompletion=completion.branches
        ),
    ] = "main",
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
    real_delays: Annotated[
        bool,
        typer.Option(
            "--real-delays", help="Wait before a retry as long as declared, not 1 s at most."
        ),
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Stay while a person has to do a step.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run a workflow as transactions on the embedded store.

    Kill it whenever you like: nothing half-done is ever visible, and --resume goes on.
    """
    from perago.app.local import home_of, open_store, settings_here
    from perago.cli.choose import chosen_mode
    from perago.cli.seed import chosen_store, read_input, workspace_for
    from perago.cli.session import LONGEST_DELAY, Session
    from perago.cli.workflow_source import load_source
    from perago.errors import UsageError
    from perago.process.killing import KillAt
    from perago.settings import keys_withheld

    settings = settings_here()
    context.with_resource(keys_withheld(os.environ))
    KillAt.from_environment(os.environ)  # A mistake in it is told before anything is made.
    mode = chosen_mode(execution_mode, settings)
    kind = chosen_store(store)
    longest = math.inf if real_delays else LONGEST_DELAY
    session = Session(
        home_of(settings),
        settings,
        jobs,
        mode,
        kind,
        as_json,
        longest_delay=longest,
        wait_for_people=wait,
    )
    warnings: list[str] = []
    if resume is not None:
        _refuse_for_resume(context)
        session.home.existing()
        ended = session.resume(resume)
    elif target is None:
        raise UsageError("nothing to run", remedy="name a workflow file or a task module")
    else:
        found = load_source(target, modules or [])
        given = read_input(values or [], input_file, params)
        _refuse_without_effect(context, found, given)
        warnings = found.check_names(given)
        warn(warnings, as_json=as_json)
        if "workspace" not in given and found.needs_workspace:
            opened = open_store(session.home, settings, kind)
            given["workspace"] = workspace_for(opened, found, repository, branch, source)
        ended = session.start(found, given)
    conclude(ended, home_of(settings), _again(context), warnings, as_json=as_json)


def _given(context: typer.Context, name: str) -> bool:
    """Return whether somebody gave an option, even if it is the default."""
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
    """Refuse input that nothing takes, and options about a workspace that is not used or given."""
    from perago.errors import UsageError

    if found.single_task and (extra := sorted(given.keys() - {"params", "workspace"})):
        raise UsageError(
            f"a single task has no input {extra[0]!r}", remedy="give its params as --params JSON"
        )
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
