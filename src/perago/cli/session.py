"""One ``perago run``: executors, a screen, a runner, and tidying up behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from perago.app.cleanup import (
    drop_branches,
    lakefs_orphans,
    lakefs_repositories,
    orphaned_branches,
    sweep_rooms,
)
from perago.app.local import Home, LocalWork, StoreKind, lakefs_of, local_pool, local_runner
from perago.brokers.local import Runner, RunRecord, RunStatus
from perago.cli.choose import run_id_of
from perago.cli.screen import plain, say
from perago.cli.seed import chosen_store
from perago.cli.view import View, view_for
from perago.cli.workflow_source import WorkflowSource
from perago.errors import PeragoError
from perago.settings import Settings
from perago.tasks.definition import TaskDefinition
from perago.tasks.loading import load_tasks

LONGEST_DELAY = 1.0
"""Seconds before a retry: delays are for servers in trouble, and here somebody is looking."""


@dataclass(frozen=True, slots=True)
class Session:
    """How this command runs things."""

    home: Home
    settings: Settings
    jobs: int
    mode: str
    store: StoreKind
    as_json: bool
    own: Mapping[str, TaskDefinition] | None = None
    """Tasks that no module declares; they run in this process only."""
    longest_delay: float = LONGEST_DELAY
    wait_for_people: bool = False

    def start(self, source: WorkflowSource, given: Mapping[str, Any]) -> RunRecord:
        """Check a workflow, then run it to its end."""
        with self._runner(source.modules, source.tasks, self.store) as (runner, view):
            made = runner.create(
                source.definition,
                given,
                modules=source.modules,
                store=self.store,
                source=source.name,
            )
            self._announce(made, "")
            with view:
                return runner.run(made.id)

    def resume(self, run_id: str) -> RunRecord:
        """Go on with a run, from its last completed step."""
        found = self.home.state.run(run_id_of(self.home, run_id))
        remembered = self.home.state.root(found)
        tasks = load_tasks(remembered.modules)
        store = chosen_store(remembered.store)
        with self._runner(remembered.modules, tasks, store) as (runner, view):
            over = remembered.status is RunStatus.COMPLETED
            self._announce(remembered, " was already completed" if over else " goes on")
            with view:
                return runner.resume(remembered.id)

    @contextmanager
    def _runner(
        self, modules: tuple[str, ...], tasks: Mapping[str, TaskDefinition], store: StoreKind
    ) -> Iterator[tuple[Runner, View]]:
        """Own the executors; what dead attempts left is removed when they are gone."""
        work = LocalWork(self.settings, modules, store, self.own)
        pool = local_pool(work, self.jobs, self.mode)
        view = view_for(as_json=self.as_json, live=self.mode == "process")
        try:
            runner = local_runner(self.home, pool, tasks, view)
            runner.longest_delay = self.longest_delay
            runner.wait_for_people = self.wait_for_people
            yield runner, view
        finally:
            pool.close()
            self._tidy(store)
            self.home.close()

    def _tidy(self, store: StoreKind) -> None:
        """Remove what dead attempts left; on a server that cannot be asked it waits for gc."""
        with suppress(PeragoError):  # An attempt has said why the root cannot be used.
            sweep_rooms(self.home, self.settings.gc_ttl_seconds)
        if store == "embedded":
            drop_branches(self.home.store, orphaned_branches(self.home))
            return
        with suppress(PeragoError):
            lakefs = lakefs_of(self.settings)
            for repository, ended in lakefs_repositories(self.home).items():
                with suppress(PeragoError):  # One that is gone must not hide the others.
                    drop_branches(lakefs, lakefs_orphans(lakefs, repository, ended))
            lakefs.close()

    def _announce(self, run: RunRecord, what: str) -> None:
        if not self.as_json:
            say(f"[bold]{plain(run.workflow.get('name'))}[/bold]  run {plain(run.id)}{what}")
