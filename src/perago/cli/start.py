"""``perago start``: a worker under Conductor (W1 to W8)."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Annotated

import typer

from perago.cli.check import Modules
from perago.cli.screen import AsJson, emit


def start(
    context: typer.Context,
    modules: Modules,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", help="Executors: attempts at once.", min=1)
    ] = 2,
    execution_mode: Annotated[
        str | None,
        typer.Option(help="process: an executor is a process; thread: all share this one."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run the tasks of these modules whenever Conductor schedules them.

    Ctrl-C or SIGTERM finishes what runs and ends; a second one ends at once. SIGHUP finishes what
    runs and starts again with new code and settings.
    """
    from perago.app.local import conductor_of, settings_here
    from perago.cli.choose import chosen_mode
    from perago.process.killing import KillAt
    from perago.settings import keys_withheld
    from perago.tasks.loading import for_workers, load_tasks

    settings = settings_here()
    withheld = context.with_resource(keys_withheld(os.environ))
    KillAt.from_environment(os.environ)  # A mistake in it is told before anything is made.
    mode = chosen_mode(execution_mode, settings)
    tasks = for_workers(load_tasks(modules))
    client = conductor_of(settings)  # Says what to install before the rest is imported.

    from perago.app.worker import store_of, watched
    from perago.worker.plan import Plan
    from perago.worker.starting import refuse_unregistered
    from perago.worker.state import lock_root
    from perago.worker.supervisor import Ending
    from perago.workspace.attempt_dirs import claim_root

    store_of(settings, tasks)
    refuse_unregistered(client, tasks)
    client.close()
    _reap()
    claim_root(settings.workspace_root)
    with lock_root(settings.workspace_root):
        plan = Plan(settings, tasks, jobs, mode)
        with watched(plan, tuple(modules)) as supervisor:
            ending = supervisor.run()
    if ending is Ending.RELOAD:
        words = [sys.executable, *sys.orig_argv[1:]]
        os.execve(sys.executable, words, {**os.environ, **withheld})  # noqa: S606 - ourselves
    if as_json:
        emit({"ended": ending.value, "counts": supervisor.ended})


def _reap() -> None:
    """Reap what an earlier life of this process left when it became this one (SIGHUP)."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
