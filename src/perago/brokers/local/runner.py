"""Runs a workflow on this machine: decide, claim, wait, decide again, until the run ends.

One runner per run, kept so by a lock; everything it knows is in the state, so that another
runner can go on where this one was killed.
"""

from __future__ import annotations

import math
import random
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from perago.brokers.local.broker import LocalBroker
from perago.brokers.local.run_loop import RunLoop
from perago.brokers.local.signals import stopping_on_signals
from perago.brokers.local.state import State
from perago.errors import UsageError
from perago.ports import Clock
from perago.process.lock import await_gone, run_lock, tidy_locks
from perago.process.reports import Executors
from perago.protocol.values import Status
from perago.workflow.chain import refuse_unchained_writers
from perago.workflow.controls import Controls
from perago.workflow.definition import Workflow
from perago.workflow.events import OnEvent, about_run, about_task, nobody_listens
from perago.workflow.parsing import parse_workflow
from perago.workflow.records import RunRecord, RunStatus
from perago.workflow.tasks import TaskKind
from perago.workflow.writers import refuse_parallel_writers

GONE_SECONDS: Final = 10.0
"""Executors end with their runner within milliseconds; this long is waited for a slow one."""

LOOKED_AT_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class TaskTable:
    """The task definitions a run may use: their controls, and which of them write or only read."""

    controls: Mapping[str, Controls]
    writers: frozenset[str] = frozenset()
    readers: frozenset[str] = frozenset()


@dataclass(slots=True)
class Runner:
    """Starts and resumes runs on a pool of executors.

    ``lock_directory`` is shared with the pool, so that a resume can tell whether the executors
    of a killed runner are gone. The owner of the pool closes it. ``longest_delay`` caps what is
    waited before a retry.
    """

    state: State
    pool: Executors
    tasks: TaskTable
    lock_directory: Path
    clock: Clock
    on_event: OnEvent = nobody_listens
    jitter: Callable[[], float] = random.random
    longest_delay: float = math.inf
    wait_for_people: bool = False
    """Whether a run that waits for a person keeps its runner."""
    _loop: RunLoop | None = field(default=None, init=False)
    _stopped: bool = field(default=False, init=False)

    def create(
        self,
        definition: Mapping[str, object],
        given: Mapping[str, object],
        *,
        modules: Collection[str] = (),
        store: str = "embedded",
        correlation_id: str | None = None,
        source: str = "workflow",
    ) -> RunRecord:
        """Check a workflow with its input and remember it as a run; nothing is started yet."""
        workflow = parse_workflow(definition, self.tasks.controls, source)
        started = workflow.started_with(given)
        writers, readers = self.tasks.writers, self.tasks.readers
        refuse_parallel_writers(definition, writers, source, started)
        for text in refuse_unchained_writers(definition, writers, readers, source, started):
            self.on_event({"event": "alert", "subject": "workflow", "reason": text})
        now = self.clock.now()
        run = RunRecord(
            id=str(uuid.uuid4()),
            workflow=definition,
            modules=tuple(modules),
            store=store,
            input=started,
            status=RunStatus.RUNNING,
            created_at=now,
            clock_from=now,
            correlation_id=correlation_id,
        )
        self.state.add_run(run)
        return run

    def run(self, run_id: str) -> RunRecord:
        """Drive a run to its end; it is still RUNNING when a signal or ``stop`` came first."""
        run = self.state.run(run_id)
        with self._locked(run.id):
            return self._go(run, "run_started")

    def resume(self, run_id: str) -> RunRecord:
        """Go on with a run.

        After a crash: attempts whose executor is gone are marked lost and tried again at once,
        without using up a retry. After a failure or timeout: the failed tasks are tried again
        with a fresh retry budget. A completed run is returned as it is. The run of a sub workflow
        goes on with the one that it belongs to, which is returned.
        """
        run = self.state.root(self.state.run(run_id))
        with self._locked(run.id):
            if run.status is RunStatus.COMPLETED:
                self.on_event(about_run("run_already_completed", run))
                return run
            self._collect_lost(run)
            return self._go(self.state.reopen(run.id, self.clock.now()), "run_resumed")

    def stop(self) -> None:
        """End ``run`` or ``resume`` soon: executors are killed, the run can be resumed."""
        self._stopped = True
        if self._loop is not None:
            self._loop.stop()

    def _go(self, run: RunRecord, event: str) -> RunRecord:
        workflow = self._workflow(run)
        self.on_event(about_run(event, run, workflow=workflow.name, input=dict(run.input)))
        self._loop = RunLoop(
            run_id=run.id,
            parse=self._workflow,
            state=self.state,
            broker=LocalBroker(self.state, self.clock),
            pool=self.pool,
            controls=self.tasks.controls,
            writers=self.tasks.writers,
            clock=self.clock,
            on_event=self.on_event,
            jitter=self.jitter,
            longest_delay=self.longest_delay,
            wait_for_people=self.wait_for_people,
            stopped=self._stopped,
        )
        with stopping_on_signals(self.stop):
            return self._loop.to_the_end()

    def _workflow(self, run: RunRecord) -> Workflow:
        return parse_workflow(run.workflow, self.tasks.controls, f"workflow of run {run.id}")

    def _collect_lost(self, run: RunRecord) -> None:
        """Make sure that no process works for this run, then write off what was running."""
        broker = LocalBroker(self.state, self.clock)
        family = self.state.family(run.id)
        for task in (task for each in family for task in self.state.tasks(each.id)):
            if not await_gone(self.lock_directory, task.executor_id, GONE_SECONDS):
                raise UsageError(
                    f"executor {task.executor_id} of task {task.reference_name!r} in run"
                    f" {task.run_id} is still alive without its runner",
                    remedy="end that process, then resume again",
                )
            # What the broker runs itself has no executor that could vanish.
            executed = task.kind is TaskKind.SIMPLE and task.status is Status.IN_PROGRESS
            if executed and broker.lose(task):
                self.on_event(about_task("task_lost", task, execution_id=task.execution_id))

    @contextmanager
    def _locked(self, run_id: str) -> Iterator[None]:
        with run_lock(self.lock_directory, run_id) as lock:
            # A process that only looks whether it is held has it for a moment, too.
            if not lock.acquire(LOOKED_AT_SECONDS):
                raise UsageError(
                    f"run {run_id} is being run by another process",
                    remedy="wait for it to end, or stop that process first",
                )
            tidy_locks(self.lock_directory)
            try:
                yield
            finally:
                # An executor of a killed runner may have been starting when we began.
                tidy_locks(self.lock_directory)
                lock.release(remove=True)
