"""Settings become what people need for their steps: where they wait, and what an attempt uses."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from perago.app.engines import EngineFactory
from perago.app.local import Home, StoreKind, conductor_of, home_of, ledger_of, open_store
from perago.attempt.services import AttemptServices
from perago.brokers.local import LocalBroker
from perago.brokers.local.human import LocalHumanTasks
from perago.clock import SystemClock
from perago.errors import RuntimeConfigError, UsageError
from perago.filesystem import roots
from perago.history.event_log import AttemptJournal
from perago.human.attempts import HumanStep, human_body
from perago.ledger.settling import settling
from perago.ports import Broker, Journal, Store
from perago.process.killing import KillAt
from perago.programs.running import ProgramRunner
from perago.protocol.events import Event
from perago.protocol.values import Claim
from perago.settings import Settings, load_settings
from perago.tasks.loading import load_tasks
from perago.workflow.human import HumanTask, HumanTasks, chosen
from perago.workspace.attempt_dirs import LocalAttemptDirs

LOCAL: Final = "local"
_LONGEST_NAME: Final = 100
Watch = Callable[[dict[str, object]], None]


def _person(settings: Settings) -> str:
    """Name who is at the keyboard: ``PERAGO_PERSON``, or the login (Q13)."""
    try:
        name = settings.person or getpass.getuser()
    except (KeyError, OSError):
        name = ""
    if not name or not name.isprintable() or "," in name or len(name) > _LONGEST_NAME:
        raise RuntimeConfigError(
            f"{name[:40]!a} is not a name of a person", remedy="set PERAGO_PERSON to yours"
        )
    return name


@dataclass(frozen=True, slots=True)
class PeoplesEngine:
    """A workflow engine whose steps people can do."""

    tasks: HumanTasks
    broker: Broker


class Human:
    """All that ``perago human`` uses; opened as seen from one directory."""

    def __init__(self, settings: Settings, project: Path, watch: Watch) -> None:
        self.settings = settings
        self.project = project
        self.home: Home = home_of(settings)
        self.person = _person(settings)
        self._watch = watch
        self._clock = SystemClock()
        self._closing = ExitStack()

    def engines(self) -> Iterator[PeoplesEngine]:
        """Return the engines that are configured: local runs, then Conductor."""
        if self.settings.conductor is None:
            self.home.existing()
        if self.home.path.is_dir():
            state = self.home.state
            yield PeoplesEngine(LocalHumanTasks(state), LocalBroker(state, self._clock))
        if self.settings.conductor is not None:
            yield self._conductor

    def engine(self, where: str) -> PeoplesEngine:
        """Return the one that a directory was taken from."""
        found = next((each for each in self.engines() if each.tasks.where == where), None)
        if found is None:
            raise UsageError(
                f"the directory was taken from {where}, which is not there as seen from"
                f" {self.project}",
                remedy="set CONDUCTOR_SERVER_URL or PERAGO_HOME as when it was taken",
            )
        return found

    def find(self, given: str) -> tuple[PeoplesEngine, HumanTask]:
        """Find a step that waits: by its name, or by the beginning of its task id."""
        for engine in self.engines():
            if task := chosen(given, engine.tasks.waiting()):
                return engine, task
            if (task := engine.tasks.task(given)) is not None:
                if task.open:
                    return engine, task
                raise UsageError(f"task {given} is over", remedy="'perago human list' shows others")
        raise UsageError(
            f"no step that waits for a person is called {given!r}",
            remedy="'perago human list' shows those that wait",
        )

    def step(self, engine: PeoplesEngine, task: HumanTask, modules: Sequence[str]) -> HumanStep:
        """Bring a step together with the declaration of its task."""
        named = (*modules, *task.modules)
        name = task.attempt.task_def_name
        if not named:
            raise UsageError(
                f"which file declares the task {name!r}?", remedy="name it: --tasks MANIFEST.toml"
            )
        known = load_tasks(named)
        if name not in known:
            raise UsageError(
                f"{', '.join(named)} declares no task {name!r}",
                remedy="name the manifest that does: --tasks MANIFEST.toml",
            )
        definition = known[name]
        kind: StoreKind = "embedded" if task.store == "embedded" else "lakefs"
        store = open_store(self.home, self.settings, kind)

        def recorded(claim: Claim) -> AttemptServices:
            engine.tasks.begin(claim)
            ledger = ledger_of(self.settings)
            made = self._services(engine, store, self._journal(claim, kind))
            broker = settling(made.broker, ledger, claim, self._clock)
            return replace(made, broker=broker, ledger=ledger)

        def unrecorded() -> AttemptServices:
            return self._services(engine, store, _Unrecorded(self._watch))

        body = human_body(definition)
        return HumanStep(task, definition, body, store, recorded, unrecorded)

    def close(self) -> None:
        """Close what was opened."""
        self._closing.close()
        self.home.close()

    @cached_property
    def _conductor(self) -> PeoplesEngine:
        from perago.brokers.conductor.broker import ConductorBroker  # noqa: PLC0415 - an extra
        from perago.brokers.conductor.human import (  # noqa: PLC0415 - an extra
            ConductorHumanTasks,
        )

        client = conductor_of(self.settings)
        self._closing.callback(client.close)
        worker = f"{self.settings.worker_id_prefix}{self.person}"
        broker = ConductorBroker(client, self._clock, worker)
        return PeoplesEngine(ConductorHumanTasks(client), broker)

    def _services(self, engine: PeoplesEngine, store: Store, journal: Journal) -> AttemptServices:
        settings, clock = self.settings, self._clock
        root = self.home.attempt_dirs if engine.tasks.where == LOCAL else settings.workspace_root
        roots.secure(root, roots.WORKSPACES)
        return AttemptServices(
            store=store,
            broker=engine.broker,
            attempt_dirs=LocalAttemptDirs(root, f"human-{os.getpid()}", clock),
            clock=clock,
            journal=journal,
            reason_limit=settings.failure_reason_max_length,
            output_limit=settings.output_max_bytes,
            engines=EngineFactory(settings.spark),
            programs=ProgramRunner(),
        )

    def _journal(self, claim: Claim, store: str) -> Journal:
        journal: Journal = AttemptJournal(self.home.events, claim, self._clock, self._watch, store)
        kill_at = KillAt.from_environment(os.environ)
        return journal if kill_at is None else kill_at.journal(journal, claim)


class _Unrecorded:
    """The journal of an attempt that publishes nothing: whoever watches hears of it."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def event(self, event: Event) -> None:
        """Tell of a point."""
        self._watch({"event": event.title, **event.facts})

    def progress(self, phase: str, done: int, total: int) -> None:
        """Tell of a transfer."""
        self._watch({"event": "progress", "phase": phase, "done": done, "total": total})


@contextmanager
def human_at(project: Path, watch: Watch) -> Iterator[Human]:
    """Open it as seen from a directory."""
    found = Human(load_settings(os.environ, project), project, watch)
    try:
        yield found
    finally:
        found.close()
