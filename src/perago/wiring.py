"""Settings become concrete shells here, and only here."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from perago.brokers.conductor.taskdef import taskdef
from perago.brokers.local import Controls, LocalBroker, Runner, State, TaskTable
from perago.brokers.local.events import OnEvent
from perago.clock import SystemClock
from perago.definition import TaskDefinition
from perago.errors import UsageError
from perago.lifecycle import Shells, run_attempt
from perago.modules import load_tasks
from perago.observe.events import AttemptJournal, EventLog
from perago.ports import Journal
from perago.process.killing import KillAt
from perago.process.pool import ProcessPool
from perago.process.reports import Executors, Send, Work
from perago.process.threads import ThreadPool
from perago.protocol.outcome import Outcome
from perago.protocol.values import Claim
from perago.settings import Settings, load_settings
from perago.stores.embedded import EmbeddedStore
from perago.workspace.rooms import AttemptRooms


@dataclass(frozen=True)
class Home:
    """What Perago keeps on a machine without servers: store, runs and event log."""

    path: Path
    rooms: Path

    @cached_property
    def store(self) -> EmbeddedStore:
        """Open the embedded store."""
        return EmbeddedStore(self.path / "store")

    @cached_property
    def events(self) -> EventLog:
        """Open the event log."""
        return EventLog(self.path / "events.sqlite")

    @cached_property
    def state(self) -> State:
        """Open the local broker's state."""
        return State(self.path / "runs.sqlite")

    @property
    def locks(self) -> Path:
        """Name the directory of the locks that runners and executors hold while they live."""
        return self.path / "locks"

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


@dataclass(frozen=True, slots=True)
class LocalWork:
    """Called once in each executor: imports the tasks and returns what runs a claim."""

    home: Path
    rooms: Path
    modules: tuple[str, ...]
    reason_limit: int

    def __call__(self, send: Send) -> Work:
        """Open this executor's own shells."""
        tasks = load_tasks(self.modules)
        home, clock = Home(self.home, self.rooms), SystemClock()
        broker = LocalBroker(home.state, clock)
        rooms = AttemptRooms(home.rooms, f"local-{os.getpid()}", clock)
        kill_at = KillAt.from_environment(os.environ)

        def work(claim: Claim) -> Outcome:
            journal: Journal = AttemptJournal(home.events, claim, clock, send)
            if kill_at is not None:
                journal = kill_at.journal(journal, claim)
            shells = Shells(home.store, broker, rooms, clock, journal, self.reason_limit)
            return run_attempt(claim, tasks[claim.attempt.task_def_name], shells)

        return work


def local_pool(settings: Settings, modules: tuple[str, ...], size: int, mode: str) -> Executors:
    """Make the executors of local runs."""
    home = home_of(settings)
    work = LocalWork(home.path, home.rooms, modules, settings.failure_reason_max_length)
    if mode == "thread":
        return ThreadPool(work, size)
    return ProcessPool(work, size, capture_output=True, lock_directory=home.locks)


def local_runner(
    home: Home, pool: Executors, tasks: Mapping[str, TaskDefinition], on_event: OnEvent
) -> Runner:
    """Make the local broker's runner for these tasks."""
    table = TaskTable(
        controls={name: Controls.from_taskdef(taskdef(task)) for name, task in tasks.items()},
        writers=frozenset(name for name, task in tasks.items() if task.writable),
    )
    return Runner(home.state, pool, table, home.locks, SystemClock(), on_event)


def settings_here() -> Settings:
    """Read the configuration as seen from the current directory."""
    return load_settings(os.environ, Path.cwd())


def home_of(settings: Settings) -> Home:
    """Find the home a configuration names."""
    return Home(settings.home, settings.local_rooms)


def home_here() -> Home:
    """Find the home as seen from the current directory."""
    return home_of(settings_here())
