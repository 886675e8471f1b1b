"""A worker put together: settings and tasks become executors, watchers and a supervisor."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, cast

from perago.app.engines import EngineFactory
from perago.app.local import StoreKind, conductor_of, home_of, lakefs_of, ledger_of
from perago.attempt.lifecycle import transact
from perago.attempt.services import AttemptServices
from perago.brokers.conductor.broker import ConductorBroker, Later
from perago.brokers.conductor.client import ConductorClient
from perago.brokers.conductor.mapping import is_over
from perago.clock import SystemClock
from perago.errors import PeragoError, RuntimeConfigError
from perago.history.event_log import AttemptJournal, EventLog
from perago.ledger.settling import settling
from perago.observe import tracing
from perago.observe.watchers import open_watchers
from perago.ports import Broker, Journal, Ledger, Store
from perago.prefetch import in_background
from perago.process.bodies import around_bodies
from perago.process.killing import KillAt
from perago.process.pool import ProcessPool
from perago.process.reports import ExecutorChannel, WatchedExecutors, Work
from perago.process.threads import ThreadPool
from perago.programs.running import ProgramRunner
from perago.protocol.budget import report_seconds
from perago.protocol.outcome import Outcome
from perago.protocol.values import Claim, Staging
from perago.settings import Settings
from perago.tasks.definition import TaskDefinition
from perago.tasks.loading import load_tasks
from perago.worker.plan import Plan, SupervisorDeps
from perago.worker.polling import CALL_SECONDS
from perago.worker.post_mortem import CleanupConfig
from perago.worker.reporter import Channels, Say
from perago.worker.runs import LEFT
from perago.worker.serving import Endpoint
from perago.worker.supervisor import Supervisor
from perago.worker.watching import Watcher
from perago.workspace.attempt_dirs import LocalAttemptDirs

STORE: StoreKind = "lakefs"
"""Workers know no other store."""


def store_of(settings: Settings, tasks: Mapping[str, TaskDefinition]) -> Store:
    """Open lakeFS when a task has a workspace (W2); others never ask for a store."""
    if any(task.workspace is not None for task in tasks.values()):
        return lakefs_of(settings)
    return cast("Store", _NoStore())


class _NoStore:
    """Stands where no task has a workspace."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeConfigError(
            f"no store is open, but {name} was asked of it", remedy="this is a bug in Perago"
        )


@dataclass(frozen=True, slots=True)
class _Tools:
    """What one executor works with; threads share them, a process has its own (W3)."""

    settings: Settings
    tasks: Mapping[str, TaskDefinition]
    store: Store
    client: ConductorClient
    events: EventLog
    around_body: Callable[[], AbstractContextManager[None]]
    ledger: Ledger | None
    leaves: bool
    """Whether the supervisor removes staging branches: it hears of every end of a process."""

    def work(self, line: ExecutorChannel) -> Work:
        """Return what runs a claim in the executor at the end of this line."""
        settings, clock = self.settings, SystemClock()
        worker_id = f"{settings.worker_id_prefix}{line.number:04d}"
        attempt_dirs = LocalAttemptDirs(settings.workspace_root, worker_id, clock)
        kill_at = KillAt.from_environment(os.environ)
        traces = tracing.start(settings)
        programs = ProgramRunner()

        def leave(staging: Staging) -> None:
            line({"event": LEFT, "repository": staging.repository, "branch": staging.branch})

        def work(claim: Claim) -> Outcome:
            token = line.token
            recorded = AttemptJournal(self.events, claim, clock, line, STORE)
            with traces.attempt(recorded, claim, line) as traced:
                journal = traced if kill_at is None else kill_at.journal(traced, claim)
                services = AttemptServices(
                    store=self.store,
                    broker=ConductorBroker(self.client, clock, worker_id, claim.lease_seconds),
                    attempt_dirs=attempt_dirs,
                    clock=clock,
                    journal=journal,
                    reason_limit=settings.failure_reason_max_length,
                    output_limit=settings.output_max_bytes,
                    cancelled=lambda: token.cancelled,
                    around_body=self.around_body,
                    engines=EngineFactory(settings.spark),
                    programs=programs,
                    ledger=self.ledger,
                    prefetch=in_background,
                    drop=leave if self.leaves else None,
                )
                outcome = transact(claim, self.tasks[claim.attempt.task_def_name], services)
            recorded.flush()
            return outcome

        return work


def _tools(
    settings: Settings,
    modules: Sequence[str],
    around_body: Callable[[], AbstractContextManager[None]],
    *,
    leaves: bool,
) -> _Tools:
    tasks = load_tasks(modules)
    return _Tools(
        settings=settings,
        tasks=tasks,
        store=store_of(settings, tasks),
        client=conductor_of(settings),
        events=home_of(settings).events,
        around_body=around_body,
        ledger=ledger_of(settings),
        leaves=leaves,
    )


@dataclass(frozen=True, slots=True)
class ProcessWork:
    """Called once in each executor process: opens everything anew."""

    settings: Settings
    modules: tuple[str, ...]

    def __call__(self, line: ExecutorChannel) -> Work:
        """Import the tasks and make the work."""
        return _tools(self.settings, self.modules, around_bodies(), leaves=True).work(line)


class ThreadWork:
    """Called in each executor thread: the first one opens what all of them use."""

    def __init__(self, settings: Settings, modules: tuple[str, ...]) -> None:
        self._settings = settings
        self._modules = modules
        self._lock = threading.Lock()
        self._tools: _Tools | None = None

    def __call__(self, line: ExecutorChannel) -> Work:
        """Make the work of one thread."""
        with self._lock:
            if self._tools is None:
                self._tools = _tools(self._settings, self._modules, nullcontext, leaves=False)
            return self._tools.work(line)


def worker_pool(
    settings: Settings, modules: tuple[str, ...], size: int, mode: str
) -> WatchedExecutors:
    """Make the executors of a worker."""
    if mode == "thread":
        return ThreadPool(ThreadWork(settings, modules), size)
    return ProcessPool(ProcessWork(settings, modules), size, capture_output=True)


def make_supervisor(
    plan: Plan, modules: tuple[str, ...], watchers: Sequence[Watcher]
) -> Supervisor:
    """Put a worker together; nothing is started or asked yet."""
    settings, clock = plan.settings, SystemClock()

    def connect() -> ConductorClient:
        return conductor_of(settings, CALL_SECONDS)

    client = connect()
    ledger = ledger_of(settings)

    def broker(claim: Claim, worker_id: str, later: Later | None = None) -> Broker:
        task = plan.tasks.get(claim.attempt.task_def_name)
        given = task.controls.publish_budget if task else None
        seconds = report_seconds(given.budget if given else None, claim.lease_seconds)
        asked = ConductorBroker(client, clock, worker_id, seconds, later)
        return settling(asked, ledger, claim, clock)

    with_workspace = any(task.workspace is not None for task in plan.tasks.values())
    drop = store_of(settings, plan.tasks).drop if with_workspace else None

    def in_progress(task_id: str) -> bool | None:
        try:
            task = client.task(task_id)
        except PeragoError:
            return True  # G2: what cannot be asked about is not removed.
        return None if task is None else not is_over(task)

    cleanup = CleanupConfig(
        root=settings.workspace_root,
        ttl_seconds=settings.gc_ttl_seconds,
        drop=drop,
        broker=broker,
        reason_limit=settings.failure_reason_max_length,
        in_progress=in_progress,
        alone=plan.mode == "process",
    )
    pool = worker_pool(settings, modules, plan.size, plan.mode)
    channels = Channels(broker, _report_journals(settings), drop)
    return Supervisor(plan, SupervisorDeps(pool, connect, cleanup, channels, watchers, clock))


def _report_journals(
    settings: Settings,
) -> Callable[[Claim, Say], AbstractContextManager[Journal]]:
    """Journals that go on where those of the executors end: same log, same trace."""
    events, clock = home_of(settings).events, SystemClock()
    kill_at = KillAt.from_environment(os.environ)
    traces = tracing.start(settings)

    @contextmanager
    def journal(claim: Claim, say: Say) -> Iterator[Journal]:
        recorded = AttemptJournal(events, claim, clock, say, STORE)
        with traces.report(recorded, claim) as traced:
            yield traced if kill_at is None else kill_at.journal(traced, claim)

    return journal


@contextmanager
def watched(plan: Plan, modules: tuple[str, ...]) -> Iterator[Supervisor]:
    """Give a supervisor with its logs, metrics and HTTP endpoint; it closes its watchers itself."""
    settings = plan.settings
    specs = {name: task.metrics for name, task in plan.tasks.items()}
    client = conductor_of(settings)
    observers = open_watchers(settings, specs, plan.size, client, SystemClock())
    supervisor = make_supervisor(plan, modules, observers.watchers)
    if not settings.http_address:
        yield supervisor
        return
    with Endpoint(
        settings.http_address,
        healthy=lambda: (supervisor.healthy, "" if supervisor.healthy else "the loop stands"),
        ready=lambda: (not supervisor.not_ready, supervisor.not_ready),
        metrics=observers.metrics.page,
    ):
        yield supervisor
