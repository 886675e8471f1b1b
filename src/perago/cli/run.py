"""``perago run``: a workflow or a task on this machine, without any server."""

from __future__ import annotations

import math
import os
import shlex
from typing import TYPE_CHECKING

import typer

from perago.cli import run_options
from perago.cli.ending import conclude, warn
from perago.cli.screen import AsJson

if TYPE_CHECKING:
    from pathlib import Path

    from perago.brokers.local import RunRecord
    from perago.cli.session import Session
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
    target: run_options.Target = None,
    modules: run_options.Modules = None,
    resume: run_options.Resume = None,
    repository: run_options.Repository = None,
    branch: run_options.Branch = "main",
    source: run_options.Source = None,
    values: run_options.Values = None,
    input_file: run_options.InputFile = None,
    params: run_options.Params = None,
    jobs: run_options.Jobs = 2,
    execution_mode: run_options.ExecutionMode = None,
    store: run_options.Store = "embedded",
    real_delays: run_options.RealDelays = False,
    wait: run_options.Wait = False,
    as_json: AsJson = False,
) -> None:
    """Run a workflow as transactions on the embedded store.

    Kill it whenever you like: nothing half-done is ever visible, and --resume goes on.
    """
    from perago.app.local import home_of, settings_here
    from perago.cli.choose import chosen_mode
    from perago.cli.seed import chosen_store, read_input
    from perago.cli.session import LONGEST_DELAY, Session
    from perago.cli.workflow_source import load_source
    from perago.errors import UsageError
    from perago.process.killing import KillAt
    from perago.settings import keys_withheld

    settings = settings_here()
    context.with_resource(keys_withheld(os.environ))
    KillAt.from_environment(os.environ)  # A mistake in it is told before anything is made.
    mode, kind = chosen_mode(execution_mode, settings), chosen_store(store)
    longest = math.inf if real_delays else LONGEST_DELAY
    how = home_of(settings), settings, jobs, mode, kind, as_json
    session = Session(*how, longest_delay=longest, wait_for_people=wait)
    warnings: list[str] = []
    if resume is not None:
        ended = _resumed(context, session, resume)
    elif target is None:
        raise UsageError("nothing to run", remedy="name a workflow file or a task module")
    else:
        found = load_source(target, modules or [])
        given = read_input(values or [], input_file, params)
        _refuse_without_effect(context, found, given)
        ended, warnings = _started(session, found, given, (repository, branch, source))
    conclude(ended, home_of(settings), _again(context), warnings, as_json=as_json)


def _resumed(context: typer.Context, session: Session, run_id: str) -> RunRecord:
    """Go on with a run, which keeps all that it was given."""
    _refuse_for_resume(context)
    session.home.existing()
    return session.resume(run_id)


def _started(
    session: Session,
    found: WorkflowSource,
    given: dict[str, object],
    place: tuple[str | None, str, Path | None],
) -> tuple[RunRecord, list[str]]:
    """Check names, fill in the workspace, and run; return what was warned of, too."""
    from perago.app.local import open_store
    from perago.cli.seed import workspace_for

    warnings = found.check_names(given)
    warn(warnings, as_json=session.as_json)
    if "workspace" not in given and found.needs_workspace:
        opened = open_store(session.home, session.settings, session.store)
        given["workspace"] = workspace_for(opened, found, *place)
    return session.start(found, given), warnings


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
