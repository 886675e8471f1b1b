"""``perago run``: a workflow or a task on this machine, without any server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perago.cli.exits import FAILED, INTERRUPTED
from perago.cli.screen import AsJson, emit, fields, say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perago.brokers.local import RunRecord
    from perago.cli.workflow_source import WorkflowSource
    from perago.settings import Settings
    from perago.task import TaskDefinition
    from perago.wiring import Home


def run(
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
    as_json: AsJson = False,
) -> None:
    """Run a workflow as transactions on the embedded store.

    Kill it whenever you like: --resume goes on from the last completed step, and nothing
    half-done is ever visible.
    """
    from perago.cli.seed import read_input
    from perago.errors import UsageError
    from perago.wiring import Home, settings_here

    settings = settings_here()
    mode = execution_mode or settings.execution_mode
    if mode not in {"process", "thread"}:
        raise UsageError(f"--execution-mode {mode!r}", remedy="use process or thread")
    home = Home(settings.home)
    if resume is not None:
        if target is not None:
            raise UsageError("--resume takes no workflow", remedy="the run remembers its own")
        ended = _resume(home.existing(), settings, resume, jobs, mode, as_json)
    elif target is None:
        raise UsageError("nothing to run", remedy="name a workflow file or a task module")
    else:
        from perago.cli.workflow_source import load_source

        found = load_source(target, modules or [])
        given = read_input(values or [], input_file, params)
        _add_workspace(home, found, given, repository, branch, source)
        ended = _start(home, settings, found, given, jobs, mode, as_json)
    _conclude(ended, as_json)


def _start(
    home: Home,
    settings: Settings,
    source: WorkflowSource,
    given: dict[str, Any],
    jobs: int,
    mode: str,
    as_json: bool,
) -> RunRecord:
    from perago.wiring import local_runner

    with _Session(home, settings, source.modules, source.tasks, jobs, mode, as_json) as session:
        runner = local_runner(home, session.pool, source.tasks, session)
        made = runner.create(source.definition, given, modules=source.modules, source=source.name)
        if not as_json:
            say(f"[bold]{source.definition.get('name')}[/bold]  run {made.id}")
        with session.view:
            return runner.run(made.id)


def _resume(
    home: Home, settings: Settings, run_id: str, jobs: int, mode: str, as_json: bool
) -> RunRecord:
    from perago.modules import load_tasks
    from perago.wiring import local_runner

    remembered = home.state.run(run_id)
    tasks = load_tasks(remembered.modules)
    with _Session(home, settings, remembered.modules, tasks, jobs, mode, as_json) as session:
        runner = local_runner(home, session.pool, tasks, session)
        if not as_json:
            say(f"[bold]{remembered.workflow.get('name')}[/bold]  run {remembered.id} goes on")
        with session.view:
            return runner.resume(remembered.id)


class _Session:
    """The executors and the screen of one command; tidies before and after."""

    def __init__(
        self,
        home: Home,
        settings: Settings,
        modules: tuple[str, ...],
        tasks: Mapping[str, TaskDefinition],
        jobs: int,
        mode: str,
        as_json: bool,
    ) -> None:
        from perago.cli.view import view_for
        from perago.wiring import local_pool

        self._home = home
        self._ttl = settings.gc_ttl_seconds
        self.pool = local_pool(settings, modules, jobs, mode)
        self.view = view_for(as_json=as_json)

    def __call__(self, event: dict[str, object]) -> None:
        self.view(event)

    def __enter__(self) -> _Session:
        return self

    def __exit__(self, *_: object) -> None:
        from perago.tidy import drop_orphans, sweep_rooms

        self.pool.close()
        sweep_rooms(self._home, self._ttl)
        drop_orphans(self._home)
        self._home.close()


def _add_workspace(
    home: Home,
    source: WorkflowSource,
    given: dict[str, Any],
    repository: str | None,
    branch: str,
    files: Path | None,
) -> None:
    """Give the workflow a workspace when it has tasks that need one and none was given."""
    from perago.cli.seed import repository_name, workspace_input

    if "workspace" in given or all(task.workspace is None for task in source.tasks.values()):
        return
    name = repository or repository_name(source.definition.get("name"))
    given["workspace"] = workspace_input(home, name, branch, files)


def _conclude(ended: RunRecord, as_json: bool) -> None:
    """Say how it ended, and what can be done next."""
    from rich.markup import escape

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
        say(f"\n[green]COMPLETED[/green]  run {ended.id}")
        shown = {name: value for name, value in ended.output.items() if name != "workspace"}
        fields({name: escape(str(value)) for name, value in shown.items() if value is not None})
        say("\n[dim]look:[/dim] perago log    [dim]or:[/dim] perago inspect " + ended.id[:8])
    elif ended.status == "RUNNING":
        say(f"\n[yellow]stopped[/yellow]; go on with: perago run --resume {ended.id}")
    else:
        say(f"\n[red]{ended.status}[/red]  {escape(ended.reason)}")
        say(f"[dim]look:[/dim] perago inspect {ended.id[:8]}")
        say(f"[dim]when it is mended, go on with:[/dim] perago run --resume {ended.id}")
    if ended.status == "RUNNING":
        raise typer.Exit(INTERRUPTED)
    if ended.status != "COMPLETED":
        raise typer.Exit(FAILED)
