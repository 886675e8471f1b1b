"""Settings become the objects of a local run here, and only here."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from perago.app.engines import EngineFactory
from perago.attempt.lifecycle import run_attempt
from perago.attempt.services import AttemptServices
from perago.brokers.conductor.taskdef import taskdef
from perago.brokers.local import Controls, LocalBroker, Runner, State, TaskTable
from perago.clock import SystemClock
from perago.errors import RuntimeConfigError, UsageError
from perago.filesystem import home, roots
from perago.history.event_log import AttemptJournal, EventLog
from perago.ledger.settling import settling
from perago.ports import Journal, Store
from perago.process.bodies import around_bodies
from perago.process.killing import KillAt
from perago.process.pool import ProcessPool
from perago.process.reports import Executors, Send, Work
from perago.process.threads import ThreadPool
from perago.programs.running import ProgramRunner
from perago.protocol.outcome import Outcome
from perago.protocol.values import Claim
from perago.settings import LedgerSettings, Settings, load_settings
from perago.stores import opening
from perago.stores.embedded import EmbeddedStore
from perago.tasks.definition import TaskDefinition
from perago.tasks.loading import load_tasks
from perago.workflow.events import OnEvent
from perago.workspace.attempt_dirs import LocalAttemptDirs

if TYPE_CHECKING:
    from perago.brokers.conductor.client import ConductorClient
    from perago.ledger.sql import Database, SqlLedger
    from perago.stores.lakefs.store import LakeFSStore

StoreKind = Literal["embedded", "lakefs"]


@dataclass(frozen=True)
class Home:
    """What Perago keeps on a machine without servers: store, runs and event log."""

    path: Path
    attempt_dirs: Path

    @cached_property
    def private(self) -> Path:
        """Make it, or see that it is ours and that no other user can look inside."""
        home.claim(self.path)
        return self.path

    @cached_property
    def store(self) -> EmbeddedStore:
        """Open the embedded store."""
        return EmbeddedStore(self.private / "store")

    @cached_property
    def events(self) -> EventLog:
        """Open the event log."""
        return EventLog(self.private / "events.sqlite")

    @cached_property
    def state(self) -> State:
        """Open the local broker's state."""
        return State(self.private / "runs.sqlite")

    @property
    def locks(self) -> Path:
        """Name the directory of the locks that runners and executors hold while they live."""
        return self.private / "locks"

    def close(self) -> None:
        """Close what was opened."""
        for name in ("store", "events", "state"):
            if name in self.__dict__:
                self.__dict__[name].close()

    def existing(self) -> Home:
        """Refuse to look into a home that was never made."""
        if not self.path.is_dir():
            raise UsageError(
                f"there is no Perago home at {self.path}",
                remedy="run 'perago run' here first, change directory, or set PERAGO_HOME",
            )
        return self


def open_store(home: Home, settings: Settings, kind: StoreKind) -> Store:
    """Open the store that was chosen: the embedded one, or the configured lakeFS."""
    if kind == "embedded":
        return home.store
    return lakefs_of(settings)


def lakefs_of(settings: Settings) -> LakeFSStore:
    """Open the configured lakeFS with this machine's shared cache."""
    return opening.lakefs_of(settings)


def conductor_of(settings: Settings, call_seconds: float = 30.0) -> ConductorClient:
    """Connect to the configured Conductor; nothing is asked of it yet."""
    if settings.conductor is None:
        raise RuntimeConfigError(
            "Conductor is not configured",
            remedy="set CONDUCTOR_SERVER_URL, in the environment or in .env",
        )
    try:
        from perago.brokers.conductor.client import ConductorClient
    except ModuleNotFoundError as error:
        raise RuntimeConfigError(
            f"Conductor needs the package {error.name!r}", remedy="install 'perago[conductor]'"
        ) from None
    return ConductorClient(settings.conductor, call_seconds=call_seconds)


def ledger_of(settings: Settings) -> SqlLedger | None:
    """Open the configured ledger, if there is one (K5); nothing is asked of it yet."""
    if settings.ledger is None:
        return None
    from perago.ledger.circuit_breaker import CircuitBreaker
    from perago.ledger.sql import SqlLedger

    return SqlLedger(CircuitBreaker(_database(settings.ledger), SystemClock().monotonic))


def _database(settings: LedgerSettings) -> Database:
    if settings.kind == "sqlite":
        from perago.ledger.sqlite import SqliteDatabase

        return SqliteDatabase(Path(settings.address))
    try:
        from perago.ledger.postgres import PostgresDatabase
    except ModuleNotFoundError as error:
        raise RuntimeConfigError(
            f"a ledger on PostgreSQL needs the package {error.name!r}",
            remedy="install 'perago[ledger]'",
        ) from None
    return PostgresDatabase(settings.address, settings.shown)


@dataclass(frozen=True, slots=True)
class LocalWork:
    """Called once in each executor: imports the tasks and returns what runs a claim."""

    settings: Settings
    modules: tuple[str, ...]
    store: StoreKind
    own: Mapping[str, TaskDefinition] | None = None
    """Tasks that no module declares: for executors of this process."""

    def __call__(self, send: Send) -> Work:
        """Open what this executor calls: store, log, broker."""
        tasks = {**load_tasks(self.modules), **(self.own or {})}
        home, clock = home_of(self.settings), SystemClock()
        store = open_store(home, self.settings, self.store)
        limit = self.settings.failure_reason_max_length
        broker = LocalBroker(home.state, clock)
        roots.secure(home.attempt_dirs, roots.WORKSPACES)
        attempt_dirs = LocalAttemptDirs(home.attempt_dirs, f"local-{os.getpid()}", clock)
        kill_at = KillAt.from_environment(os.environ)
        ledger = ledger_of(self.settings)
        around = around_bodies()
        programs = ProgramRunner()

        def work(claim: Claim) -> Outcome:
            journal: Journal = AttemptJournal(home.events, claim, clock, send, self.store)
            if kill_at is not None:
                journal = kill_at.journal(journal, claim)
            services = AttemptServices(
                store,
                settling(broker, ledger, claim, clock),
                attempt_dirs,
                clock,
                journal,
                limit,
                engines=EngineFactory(self.settings.spark),
                programs=programs,
                ledger=ledger,
                around_body=around,
            )
            return run_attempt(claim, tasks[claim.attempt.task_def_name], services)

        return work


def local_pool(work: LocalWork, size: int, mode: str) -> Executors:
    """Make the executors of local runs."""
    if mode == "thread":
        return ThreadPool(work, size)
    locks = home_of(work.settings).locks
    return ProcessPool(work, size, capture_output=True, lock_directory=locks)


def local_runner(
    home: Home, pool: Executors, tasks: Mapping[str, TaskDefinition], on_event: OnEvent
) -> Runner:
    """Make the local broker's runner for these tasks."""
    writers = frozenset(name for name, task in tasks.items() if task.writable)
    table = TaskTable(
        controls={name: Controls.from_taskdef(taskdef(task)) for name, task in tasks.items()},
        writers=writers,
        readers=frozenset(name for name, task in tasks.items() if task.workspace) - writers,
    )
    return Runner(home.state, pool, table, home.locks, SystemClock(), on_event)


def lakefs_here() -> LakeFSStore:
    """Open lakeFS as configured where we stand."""
    return lakefs_of(settings_here())


def settings_here() -> Settings:
    """Read the configuration as seen from the current directory."""
    return load_settings(os.environ, Path.cwd())


def home_of(settings: Settings) -> Home:
    """Find the home a configuration names."""
    return Home(settings.home, settings.local_rooms)


def home_here() -> Home:
    """Find the home as seen from the current directory."""
    return home_of(settings_here())
