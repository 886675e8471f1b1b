"""``perago.run``: a workflow from Python, in a notebook or a script.

It is the run of ``perago run``: the same store, the same executors, the same history.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perago.app.local import StoreKind, home_of, open_store, settings_here
from perago.cli.screen import note, plain
from perago.cli.seed import chosen_store, workspace_for
from perago.cli.session import Session
from perago.cli.workflow_source import WorkflowSource
from perago.errors import UsageError
from perago.notebook.result import RunResult, result_of
from perago.notebook.sources import Tasks, source_of, tasks_of
from perago.notebook.spawning import main_left_alone
from perago.protocol.plain import refuse
from perago.settings import Settings, keys_withheld

__all__ = ["RunResult", "run"]


def run(  # noqa: PLR0913 - the options of `perago run`, each with its usual value
    workflow: object,
    tasks: Tasks = (),
    /,
    *,
    files: str | Path | None = None,
    repo: str | None = None,
    branch: str = "main",
    store: str = "embedded",
    jobs: int = 2,
    show: bool = True,
    input: Mapping[str, Any] | None = None,  # noqa: A002 - the word of a workflow file
    **values: Any,
) -> RunResult:
    """Run a workflow to its end and return what became of it; a failed run is returned, too.

    ``workflow`` is a file, a WorkflowDef as a dict, an object of Conductor's builder, or one task
    to run alone. ``tasks`` are modules, their names, or task functions. Keywords are the workflow's
    inputs, or the params of a single task; ``input`` takes those whose names are taken here.

    ``files`` is a directory that is committed first, as the input.
    """
    source, own = source_of(workflow, tasks_of(tasks))
    given = _given(input, values, single_task=source.single_task)
    settings, kind = settings_here(), chosen_store(store)
    mode = "thread" if own else settings.execution_mode
    if own and show:
        names = ", ".join(map(repr, own))
        note(
            f"[dim]{plain(names)}: defined in this session, so the run uses threads of this "
            "process; a time limit cannot stop them, and it cannot be resumed[/dim]"
        )
    with keys_withheld(os.environ), main_left_alone():
        if "workspace" not in given and source.needs_workspace:
            place = Path(files) if files is not None else None
            given["workspace"] = _workspace(settings, kind, source, repo, branch, place)
        elif files is not None:
            raise UsageError("files have no workspace to go to", remedy="leave files=... out")
        session = Session(home_of(settings), settings, jobs, mode, kind, not show, own=own)
        ended = session.start(source, given)
    if ended.status == "RUNNING":
        how = "" if own else f"; resume it with: perago run --resume {ended.id}"
        raise KeyboardInterrupt(f"run {ended.id} was stopped{how}")
    return result_of(ended.id, settings, kind)


def _workspace(
    settings: Settings,
    kind: StoreKind,
    source: WorkflowSource,
    repo: str | None,
    branch: str,
    files: Path | None,
) -> dict[str, str]:
    home = home_of(settings)
    opened = open_store(home, settings, kind)
    try:
        return workspace_for(opened, source, repo, branch, files)
    finally:
        home.close()


def _given(
    named: Mapping[str, Any] | None, values: Mapping[str, Any], *, single_task: bool
) -> dict[str, Any]:
    """Join both ways of giving inputs; a single task takes them as its params."""
    if named is not None and not isinstance(named, Mapping):
        raise UsageError(f"input is of type {type(named).__name__}", remedy="give a dict")
    given = {**(named or {}), **values}
    for key, value in given.items():
        if problem := refuse(value, sent=True):
            raise UsageError(
                f"input {key!r} {problem}", remedy="give text, numbers, lists or dicts"
            )
    if single_task and not {*given} <= {"params", "workspace"}:
        return {"params": given}
    return given
