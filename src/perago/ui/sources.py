"""What the pages are made of: one home, and the servers that are configured beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from perago.app.local import Home, home_of
from perago.app.run_state import state_of
from perago.brokers.local.executions import execution_of
from perago.brokers.local.listing import RunLine, RunListing, RunQuery
from perago.errors import NotFoundError, UsageError
from perago.filesystem.home import is_home
from perago.history.attempts import AttemptHistory, attempt_history
from perago.history.event_log import Recorded
from perago.history.figures import TaskFigures, figures
from perago.history.rows import attempt_row
from perago.ports import Clock
from perago.protocol.names import PRIVATE
from perago.protocol.values import Status
from perago.settings import Settings
from perago.stores import opening
from perago.worker.state import in_use, read_state
from perago.workflow.progress import WorkflowExecution
from perago.workflow.records import RunRecord, RunStatus, TaskRecord

if TYPE_CHECKING:
    from perago.stores.embedded import EmbeddedStore
    from perago.stores.lakefs.store import LakeFSStore

STORES: Final = ("embedded", "lakefs")


@dataclass(frozen=True)
class PageSources:
    """Reads what a page shows. Nothing of it is changed by reading."""

    settings: Settings
    clock: Clock

    @property
    def home(self) -> Home:
        """The home whose runs and events are shown; one that is gone is not made again."""
        if not is_home(self._home.path):
            raise NotFoundError(f"there is no Perago home at {self._home.path}")
        return self._home

    @cached_property
    def _home(self) -> Home:
        return home_of(self.settings)

    @cached_property
    def _listing(self) -> RunListing:
        return RunListing(self.home.state.path)

    @cached_property
    def _lakefs(self) -> LakeFSStore:
        return opening.lakefs_of(self.settings)

    # --- runs --------------------------------------------------------------------------------

    def runs(self, query: RunQuery) -> list[tuple[RunLine, str]]:
        """List runs, newest first, each with how it stands."""
        lines = self._listing.page(query)
        return [(line, state_of(self.home, line.id, line.status, root=line.id)) for line in lines]

    def workflows(self) -> Sequence[str]:
        """List the names of the workflows that were run."""
        return self._listing.names()

    def run(self, run_id: str) -> RunRecord:
        """Find a run by its whole id; ``NotFoundError`` when there is none."""
        try:
            found = self.home.state.run(run_id)
        except UsageError as error:
            raise NotFoundError(error.message) from None
        if found.id != run_id:
            raise NotFoundError(f"there is no run {run_id!r}")
        return found

    def state(self, run: RunRecord) -> str:
        """Say how a run stands now."""
        return state_of(self.home, run.id, run.status)

    def execution(self, run: RunRecord) -> WorkflowExecution:
        """Return a run with its attempts, as they are now."""
        return execution_of(run, self.home.state.tasks(run.id), self.clock.now())

    # --- attempts ----------------------------------------------------------------------------

    def attempts(self, executions: Sequence[str]) -> dict[str, AttemptHistory]:
        """Return what the event log knows of some attempts, by their execution ids."""
        found: dict[str, list[Recorded]] = {}
        for one in self.home.events.of_executions(executions):
            found.setdefault(one.execution_id, []).append(one)
        return {key: attempt_history(events) for key, events in found.items()}

    def attempt(self, execution_id: str) -> AttemptHistory:
        """Return what the event log knows of one; ``NotFoundError`` when that is nothing."""
        events = self.home.events.of_execution(execution_id)
        if not events:
            raise NotFoundError(f"nothing is known of the execution {execution_id!r}")
        return attempt_history(events)

    def is_running(self, told: AttemptHistory) -> bool:
        """Return whether an attempt is under way: its run is driven, or a worker has it."""
        if told.state.outcome is not None:
            return False
        record = self.task(told.attempt.task_id)
        if record is not None:
            driven = state_of(self.home, record.run_id, RunStatus.RUNNING) == RunStatus.RUNNING
            return record.status is Status.IN_PROGRESS and driven
        alive, worker = self.worker()
        running = worker.get("running") if alive else None
        ids = [one.get("execution_id") for one in running] if isinstance(running, list) else []
        return told.execution_id in ids

    def task(self, task_id: str) -> TaskRecord | None:
        """Return what the state has of an attempt; None for one that ran under Conductor."""
        return self.home.state.task(task_id)

    # --- versions ----------------------------------------------------------------------------

    @property
    def stores(self) -> tuple[str, ...]:
        """Name the stores that can be looked at."""
        return STORES if self.settings.lakefs is not None else STORES[:1]

    def store(self, kind: str) -> EmbeddedStore | LakeFSStore:
        """Open a store; ``NotFoundError`` where there is none of that kind."""
        if kind not in self.stores:
            raise NotFoundError(f"the store {kind!r} is not configured here")
        if kind != "embedded":
            return self._lakefs
        if not self._has_store:
            raise NotFoundError("nothing has been published in this home yet")
        return self.home.store

    @property
    def _has_store(self) -> bool:
        return (self.home.path / "store").is_dir()

    def repositories(self, kind: str) -> Iterable[str]:
        """List the repositories of a store."""
        if kind == "embedded":
            return self.home.store.repositories() if self._has_store else ()
        from perago.stores.lakefs.admin import repositories

        self.store(kind)
        return repositories(self._lakefs.client)

    def branches(self, kind: str, repository: str) -> Sequence[str]:
        """List the branches of a repository that are not private to attempts."""
        if kind == "embedded":
            names = [branch.name for branch in self.home.store.branches(repository)]
        else:
            from perago.stores.lakefs.admin import visible_branches

            self.store(kind)
            names = [name for name, _ in visible_branches(self._lakefs.client, repository)]
        return [name for name in names if not name.startswith(PRIVATE)]

    # --- what happens ------------------------------------------------------------------------

    def figures(self, attempts: int) -> tuple[list[TaskFigures], float | None]:
        """Add up the newest attempts, task by task; also say when the first of them began."""
        events = self.home.events
        begins = events.newest(attempts)
        if begins is None:
            return [], None
        row, since = begins
        return figures(map(attempt_row, events.by_execution(row - 1, events.last()))), since

    def worker(self) -> tuple[bool, dict[str, Any]]:
        """Return whether a worker runs on this machine's root, and what it last wrote of itself."""
        root = self.settings.workspace_root
        try:
            return in_use(root), read_state(root)
        except OSError:  # It is somebody else's.
            return False, {}
