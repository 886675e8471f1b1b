"""The loop of one run: carries out what the decider says, and tells the state what happened.

The runs of its sub workflows are driven with it, on the same executors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from perago.brokers.local.actions import (
    Action,
    AddSystemTask,
    Alert,
    CancelTask,
    ContinueWithErrors,
    Schedule,
    TimeOut,
    UpdateSystemTask,
)
from perago.brokers.local.broker import LocalBroker
from perago.brokers.local.decider import Decision, RunSituation, decide
from perago.brokers.local.limits import may_start_at
from perago.brokers.local.state import State
from perago.ports import Clock
from perago.process.reports import (
    Died,
    Executors,
    Finished,
    Message,
    Output,
    Report,
    StartFailed,
)
from perago.protocol.outcome import Outcome
from perago.protocol.values import Status
from perago.workflow.controls import Controls
from perago.workflow.definition import Workflow
from perago.workflow.events import OnEvent, about_run, about_task, finished, within
from perago.workflow.family import Family
from perago.workflow.records import OPEN, RunRecord, RunStatus, TaskRecord, left_to_people
from perago.workflow.tasks import TaskKind

LOOK_SECONDS: Final = 1.0
"""How often the state is looked at when nothing happens: another process may terminate the run."""


@dataclass(slots=True)
class RunLoop:
    """One runner's hold on one run, and on those that belong to it."""

    run_id: str
    parse: Callable[[RunRecord], Workflow]
    state: State
    broker: LocalBroker
    pool: Executors
    controls: Mapping[str, Controls]
    writers: frozenset[str]
    clock: Clock
    on_event: OnEvent
    jitter: Callable[[], float]
    longest_delay: float
    wait_for_people: bool = False
    """Whether to stay when nothing can go on before a person has done a step."""
    stopped: bool = False
    _running: dict[str, TaskRecord] = field(default_factory=dict)
    _alerted: set[Alert] = field(default_factory=set)
    _workflows: dict[str, Workflow] = field(default_factory=dict)
    _steps: dict[str, str] = field(default_factory=dict)
    """Where the runs of sub workflows belong: the steps that lead there, by the id of the run."""
    _over: dict[str, tuple[TaskRecord, ...]] = field(default_factory=dict)

    def stop(self) -> None:
        """Ask the loop to end; safe from a signal handler."""
        self.stopped = True
        self.pool.wake()

    def to_the_end(self) -> RunRecord:
        """Loop until the run is over or a stop is asked for; leave no executor at work."""
        try:
            while True:
                family = self._look()
                run = family.runs[0]
                if run.status is not RunStatus.RUNNING:
                    return self._ended(run)
                if self.stopped:
                    return self._interrupted(run)
                self._step(family)
        finally:
            self._abandon()

    def _look(self) -> Family:
        """Read where all runs are, and end what is done for one that has ended."""
        runs = self.state.family(self.run_id)
        tasks = {run.id: self._tasks_of(run) for run in runs}
        family = Family(runs, tasks, self._workflows)
        for run in runs:
            if run.id not in self._workflows:
                self._workflows[run.id] = self.parse(run)
                self._steps[run.id] = family.path(run)
        over = {run.id for run in runs[1:] if run.status is not RunStatus.RUNNING}
        for execution_id, task in list(self._running.items()):
            if task.run_id in over:
                self._end_execution(execution_id)
                self._tell_finished(task)
        return family

    def _tasks_of(self, run: RunRecord) -> tuple[TaskRecord, ...]:
        """Read the attempts of a run; those of one that has ended no longer change."""
        if run.status is RunStatus.RUNNING:
            self._over.pop(run.id, None)
            return self.state.tasks(run.id)
        if run.id not in self._over:
            self._over[run.id] = self.state.tasks(run.id)
        return self._over[run.id]

    def _step(self, family: Family) -> None:
        """Decide for each run; act on an answer, or wait until there is a reason to ask again."""
        running = [run for run in family.runs if run.status is RunStatus.RUNNING]
        wake_at: float | None = None
        for run in running:
            decision = self._decide(run, family)
            if changes := self._without_alerts(run, decision):
                if self.state.apply(run.id, changes, self.clock.now()):
                    for action in changes:
                        self._carried_out(action)
                return
            wake_at = _earliest(wake_at, decision.wake_at)
        wake_at = _earliest(wake_at, self._claim_ready(family))
        open_tasks = [task for run in running for task in family.tasks[run.id]]
        if not self.wait_for_people and left_to_people(open_tasks):
            self.stopped = True
            return
        self._wait(wake_at)

    def _decide(self, run: RunRecord, family: Family) -> Decision:
        return decide(
            RunSituation(
                workflow=self._workflows[run.id],
                run=run,
                tasks=family.tasks[run.id],
                controls=self.controls,
                now=self.clock.now(),
                writers=self.writers,
                jitter=self.jitter(),
                longest_delay=self.longest_delay,
                family=family,
            )
        )

    def _without_alerts(self, run: RunRecord, decision: Decision) -> list[Action]:
        """Tell of each alert once; it changes nothing."""
        for action in decision.actions:
            if isinstance(action, Alert) and action not in self._alerted:
                self._alerted.add(action)
                facts = {"subject": action.subject, "reason": action.reason}
                self.on_event({"event": "alert", "run_id": run.id, **facts})
        return [action for action in decision.actions if not isinstance(action, Alert)]

    def _tell(self, name: str, task: TaskRecord, **facts: object) -> None:
        """Tell the listener about an attempt, and where it belongs."""
        self.on_event(within(self._steps.get(task.run_id, ""), about_task(name, task, **facts)))

    def _carried_out(self, action: Action) -> None:
        """Tell the listener, and end what the action made pointless."""
        match action:
            case Schedule(task, retry_of):
                wait = max(0.0, task.start_at - self.clock.now())
                name = "task_scheduled" if retry_of is None else "task_retry"
                self._tell(name, task, in_seconds=wait)
            case TimeOut(task) | CancelTask(task):
                self._end_execution(task.execution_id)
                self._tell_finished(task)
            case AddSystemTask(task) | UpdateSystemTask(_, task):
                self._tell_of_system_task(task, new=isinstance(action, AddSystemTask))
            case ContinueWithErrors(task):
                self._tell_finished(task)
            case _:
                pass  # the end of the run is told when the state shows it

    def _tell_of_system_task(self, task: TaskRecord, *, new: bool) -> None:
        if task.status not in OPEN:
            self._tell_finished(task)
        elif new:
            wait = max(0.0, task.start_at - self.clock.now())
            self._tell("task_scheduled", task, in_seconds=wait)

    # --- executors -----------------------------------------------------------------------------

    def _claim_ready(self, family: Family) -> float | None:
        """Give every attempt that may start to an idle executor; return when to look again."""
        now = self.clock.now()
        controls = {
            (run_id, task.reference_name): task.controls_among(self.controls)
            for run_id in (run.id for run in family.runs if run.status is RunStatus.RUNNING)
            for task in self._workflows[run_id].simple_tasks()
        }
        known = family.every_task()
        waiting: list[float] = []
        ready: list[TaskRecord] = []
        for index, task in enumerate(known):
            if task.status is not Status.SCHEDULED or task.kind is not TaskKind.SIMPLE:
                continue
            registered = self.controls.get(task.task_def_name) or Controls()  # of a dynamic fork
            given = controls.get((task.run_id, task.step), registered)
            at = may_start_at(task, given, known)
            if at <= now:
                # Counts as started for the limits of those behind it.
                known[index] = replace(task, status=Status.IN_PROGRESS, started_at=now)
                ready.append(task)
            else:
                waiting.append(at)
        self.pool.want(len(self._running) + len(ready))
        for task, executor_id in zip(ready, self.pool.idle, strict=False):
            self._claim(task, executor_id)
        return min(waiting, default=None)

    def _claim(self, task: TaskRecord, executor_id: str) -> None:
        claim = self.broker.claim(task, executor_id)
        if claim is None:
            return
        self._running[claim.execution_id] = replace(
            task, execution_id=claim.execution_id, executor_id=executor_id
        )
        self._tell("task_claimed", task, execution_id=claim.execution_id, executor_id=executor_id)
        self.pool.submit(claim, executor_id)

    def _wait(self, wake_at: float | None) -> None:
        """Take in reports until one of them, or the time, calls for a decision."""
        patience = LOOK_SECONDS
        if wake_at is not None:
            patience = min(patience, max(0.0, wake_at - self.clock.now()))
        deadline = self.clock.monotonic() + patience
        while not self.stopped:
            reports = self.pool.poll(max(0.0, deadline - self.clock.monotonic()))
            news = [self._take(report) for report in reports]
            if any(news) or not reports or self.clock.monotonic() >= deadline:
                return

    def _take(self, report: Report) -> bool:
        """Act on one report; True when a decision may follow from it."""
        match report:
            case Finished(_, execution_id, outcome):
                self._settle(execution_id, outcome)
            case Died(executor_id, execution_id, how):
                self.on_event(
                    {
                        "event": "executor_died",
                        "run_id": self.run_id,
                        "executor_id": executor_id,
                        "how": how,
                    }
                )
                # R3: whatever it was about to say, it did not.
                self._settle(execution_id, Outcome(Status.FAILED, reason=f"executor died: {how}"))
            case StartFailed(error):
                raise error
            case Message(_, execution_id, body):
                self._forward("message", execution_id, message=dict(body))
                return False
            case Output(_, execution_id, stream, line):
                self._forward("output", execution_id, stream=stream, line=line)
                return False
        return True

    def _settle(self, execution_id: str, outcome: Outcome) -> None:
        """Report for an executor; it has usually done so itself, and the first report counts."""
        task = self._running.pop(execution_id, None)
        if task is None:
            return
        self.broker.report(task.attempt, outcome)
        self._tell_finished(task)

    def _forward(self, name: str, execution_id: str, **facts: object) -> None:
        task = self._running.get(execution_id)
        if task is None:
            self.on_event({"event": name, "run_id": self.run_id, **facts})
        else:
            self._tell(name, task, execution_id=execution_id, **facts)

    def _end_execution(self, execution_id: str) -> None:
        if self._running.pop(execution_id, None) is not None:
            self.pool.kill(execution_id)

    # --- the end -------------------------------------------------------------------------------

    def _ended(self, run: RunRecord) -> RunRecord:
        facts = {"output": dict(run.output), "reason": run.reason}
        self.on_event(about_run("run_finished", run, **facts))
        return run

    def _interrupted(self, run: RunRecord) -> RunRecord:
        self._abandon()
        self.on_event(about_run("run_stopped", run))
        return run

    def _abandon(self) -> None:
        """Kill what still runs; reaped is lost, not failed, so that a resume tries it at once."""
        for execution_id, task in list(self._running.items()):
            self._end_execution(execution_id)
            if self.broker.lose(task):
                self._tell("task_lost", task, execution_id=execution_id)

    def _tell_finished(self, task: TaskRecord) -> None:
        event = finished(self.state.task(task.task_id) or task)
        self.on_event(within(self._steps.get(task.run_id, ""), event))


def _earliest(one: float | None, other: float | None) -> float | None:
    known = [moment for moment in (one, other) if moment is not None]
    return min(known, default=None)
