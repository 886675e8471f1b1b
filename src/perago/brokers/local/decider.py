"""What happens next in a run: a pure function in the spirit of Conductor's decider.

It looks at the definition and at every attempt so far and answers with actions; the runner
carries them out in one transaction and asks again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from perago.brokers.local.actions import (
    Action,
    AddSystemTask,
    Alert,
    CancelTask,
    ContinueWithErrors,
    EndRun,
    Schedule,
    TimeOut,
    UpdateSystemTask,
)
from perago.protocol.values import Status
from perago.workflow.controls import Controls, TimeoutAction
from perago.workflow.definition import Workflow
from perago.workflow.expressions import Read, as_text, refresh, resolve
from perago.workflow.records import (
    OPEN,
    SUCCESSFUL,
    RunRecord,
    RunStatus,
    TaskRecord,
    task_id_of,
)
from perago.workflow.retry import Retry, after_failure
from perago.workflow.scope import reader, variables_of, workflow_scope
from perago.workflow.tasks import (
    ForkTask,
    JoinTask,
    SetVariableTask,
    SimpleTask,
    SwitchTask,
    TaskKind,
    Tasks,
    TerminateTask,
    WaitTask,
    WorkflowTask,
)
from perago.workflow.termination import end_of, output_of
from perago.workflow.waiting import WaitInputError, due_at
from perago.workflow.writers import parallel_writer

_NAMED_BY_KIND = frozenset({TaskKind.FORK_JOIN, TaskKind.JOIN, TaskKind.SWITCH})
"""Kinds whose own name Conductor writes in place of the name that the definition gives."""


@dataclass(frozen=True, slots=True)
class RunSituation:
    """All that a decision depends on; ``jitter`` is a number from 0 to 1.

    ``longest_delay`` caps the delays of retries.
    """

    workflow: Workflow
    run: RunRecord
    tasks: tuple[TaskRecord, ...]
    controls: Mapping[str, Controls]
    now: float
    writers: frozenset[str] = frozenset()
    jitter: float = 0.0
    longest_delay: float = math.inf


@dataclass(frozen=True, slots=True)
class Decision:
    """Actions to carry out now, and when time alone changes the answer."""

    actions: tuple[Action, ...] = ()
    wake_at: float | None = None


def decide(situation: RunSituation) -> Decision:
    """Return what to do next; nothing when the run is over."""
    if situation.run.status is not RunStatus.RUNNING:
        return Decision()
    return _Decider(situation).decide()


class _RunEnds(Exception):  # noqa: N818 - unwinds the walk, never seen outside
    def __init__(
        self, status: RunStatus, reason: str, output: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.output = output


@dataclass(slots=True)
class _Decider:
    """One walk over the definition, against the latest attempt of each task."""

    situation: RunSituation
    latest: dict[str, TaskRecord] = field(default_factory=dict)
    actions: list[Action] = field(default_factory=list)
    wake_at: float | None = None
    seq: int = 0
    branches_open: bool = False

    def decide(self) -> Decision:
        for task in self.situation.tasks:
            self.latest[task.reference_name] = task
            self.seq = max(self.seq, task.seq)
        try:
            self._run_timeout()
            finished = self._sequence(self.situation.workflow.tasks)
        except _RunEnds as end:
            return self._cut_short(end)
        if finished and not self.branches_open:
            self.actions.append(EndRun(RunStatus.COMPLETED, self._output()))
        return Decision(tuple(self.actions), self.wake_at)

    def _cut_short(self, ended: _RunEnds) -> Decision:
        """End the run: what is open is cancelled, what was to be scheduled is dropped."""
        settled = [action for action in self.actions if isinstance(action, TimeOut)]
        timed_out = {action.task.task_id for action in settled}
        # What this decision was about to add will never be.
        self.latest = {task.reference_name: task for task in self.situation.tasks}
        cancelled = [
            CancelTask(task)
            for task in self.situation.tasks
            if task.status in OPEN and task.task_id not in timed_out
        ]
        output = self._output() if ended.output is None else dict(ended.output)
        end = EndRun(ended.status, output, ended.reason)
        return Decision((*settled, *cancelled, end))

    # --- the walk: each method returns whether the next task of the list may begin -------------

    def _sequence(self, tasks: Tasks) -> bool:
        return all(self._task(task) for task in tasks)

    def _task(self, task: WorkflowTask) -> bool:  # noqa: PLR0911 - one for each kind
        match task:
            case SimpleTask():
                return self._simple(task)
            case ForkTask():
                return self._fork(task)
            case JoinTask():
                return self._join(task)
            case SwitchTask():
                return self._switch(task)
            case SetVariableTask():
                return self._set_variable(task)
            case TerminateTask():
                return self._terminate(task)
            case WaitTask():
                return self._wait(task)

    def _fork(self, task: ForkTask) -> bool:
        if task.reference_name not in self.latest:
            self._complete(task, TaskKind.FORK_JOIN, {}, {})
        # Not all(): every branch moves, whatever the others do.
        finished = [self._sequence(branch) for branch in task.branches]
        self.branches_open = self.branches_open or not all(finished)
        return True

    def _join(self, task: JoinTask) -> bool:
        record = self._opened(task)
        if record is None:
            # As in Conductor it is there from the beginning of its fork, and waits.
            record = self._add(task, TaskKind.JOIN, {"joinOn": list(task.join_on)})
        if record.status in SUCCESSFUL:
            return True
        joined = [self.latest.get(name) for name in task.join_on]
        done = [found for found in joined if found and found.status in SUCCESSFUL]
        if len(done) < len(joined):
            return False
        outputs = {found.reference_name: found.output for found in done if found.output}
        failed = [found for found in done if found.status is Status.COMPLETED_WITH_ERRORS]
        told = "".join(f"{found.task_def_name}/{found.task_id} " for found in failed)
        self._end(
            record,
            Status.COMPLETED_WITH_ERRORS if failed else Status.COMPLETED,
            outputs,
            f"{told}completed with errors" if failed else "",
        )
        return True

    def _switch(self, task: SwitchTask) -> bool:
        record = self.latest.get(task.reference_name)
        if record is None:
            given = _object(resolve(task.input, self._reader()))
            value = as_text(given.get(task.expression))
            record = self._complete(
                task,
                TaskKind.SWITCH,
                {**given, "case": value, **({"hasChildren": "true"} if task.chosen(value) else {})},
                {"evaluationResult": [value], "selectedCase": value},
            )
        return self._sequence(task.chosen(str(record.input["case"])))

    def _set_variable(self, task: SetVariableTask) -> bool:
        if task.reference_name in self.latest:
            return True
        given = _object(resolve(task.input, self._reader()))
        self._complete(task, TaskKind.SET_VARIABLE, given, {})
        # As in Conductor: what follows is decided after all that can begin now.
        return False

    def _terminate(self, task: TerminateTask) -> bool:
        record = self.latest.get(task.reference_name)
        if record is None:
            given = _object(resolve(task.input, self._reader()))
            self._complete(task, TaskKind.TERMINATE, given, output_of(given))
            # The run ends with the next decision: what begins beside it is there, and cancelled.
            return False
        raise _RunEnds(*end_of(record.input, record.task_id), record.output)

    def _wait(self, task: WaitTask) -> bool:
        record = self._opened(task)
        if record is None:
            record = self._add(task, TaskKind.WAIT, _object(resolve(task.input, self._reader())))
        if record.status in SUCCESSFUL:
            return True
        try:
            due = due_at(record.input, record.scheduled_at)
        except WaitInputError as error:
            self._end(record, Status.FAILED_WITH_TERMINAL_ERROR, {}, str(error))
            return False
        if self.situation.now >= due:
            self._end(record, Status.COMPLETED, {})
        else:
            self._wake(due)
        return False

    def _simple(self, task: SimpleTask) -> bool:
        record = self.latest.get(task.reference_name)
        if record is None:
            self._schedule(task, None, self.situation.now + task.start_delay)
            return False
        if record.status in SUCCESSFUL:
            return True
        if record.status in OPEN:
            self._watch(task, record)
            return False
        if record.lost or record.generation < self.situation.run.generation:
            self._schedule(task, record, self.situation.now)
            return False
        return self._failed(task, record)

    # --- attempts ------------------------------------------------------------------------------

    def _failed(self, task: SimpleTask, record: TaskRecord) -> bool:
        controls = task.controls_among(self.situation.controls)
        ended = record.ended_at if record.ended_at is not None else self.situation.now
        verdict = after_failure(
            controls,
            record.status,
            failures=self._failures(task),
            spent_seconds=ended - self._first_scheduled(task),
            jitter=self.situation.jitter,
            longest_delay=self.situation.longest_delay,
        )
        if isinstance(verdict, Retry):
            # From the end of the failure: a delay that passed while nothing ran is over.
            self._schedule(task, record, ended + verdict.delay_seconds)
            return False
        timed_out = record.status is Status.TIMED_OUT
        ends_run = timed_out and controls.timeout_policy is TimeoutAction.TIME_OUT_WF
        if task.optional and not ends_run:
            self.actions.append(ContinueWithErrors(record))
            self.latest[task.reference_name] = replace(record, status=Status.COMPLETED_WITH_ERRORS)
            return True
        raise _RunEnds(
            RunStatus.TIMED_OUT if timed_out else RunStatus.FAILED,
            f"task {task.reference_name!r} ended {record.status} at attempt"
            f" {record.retry_count + 1}, {verdict.why}: {record.reason or 'no reason given'}",
        )

    def _failures(self, task: SimpleTask) -> int:
        """Count the failures that use up retries: not lost, not from before a resume."""
        return sum(
            1
            for record in self._attempts(task)
            if not record.lost and record.status not in OPEN | {Status.CANCELED}
        )

    def _first_scheduled(self, task: SimpleTask) -> float:
        """Where the total timeout begins: time before a resume does not count."""
        begin = self.situation.run.clock_from
        return max(begin, min((r.scheduled_at for r in self._attempts(task)), default=begin))

    def _attempts(self, task: SimpleTask) -> list[TaskRecord]:
        return [
            record
            for record in self.situation.tasks
            if record.reference_name == task.reference_name
            and record.generation == self.situation.run.generation
        ]

    def _watch(self, task: SimpleTask, record: TaskRecord) -> None:
        """Look at the deadlines of an open attempt."""
        controls = task.controls_among(self.situation.controls)
        if record.status is Status.SCHEDULED:
            self._wake(record.start_at)
        deadlines = {}
        if controls.timeout_seconds > 0 and record.started_at is not None:
            deadlines["timeoutSeconds"] = record.started_at, controls.timeout_seconds
        if controls.total_timeout_seconds > 0:
            deadlines["totalTimeoutSeconds"] = (
                self._first_scheduled(task),
                controls.total_timeout_seconds,
            )
        for name, (begin, seconds) in deadlines.items():
            if self.situation.now < begin + seconds:
                self._wake(begin + seconds)
                continue
            reason = f"{name} {seconds:g} exceeded (policy {controls.timeout_policy})"
            if controls.timeout_policy is TimeoutAction.ALERT_ONLY:
                self.actions.append(Alert(record.task_id, reason))
            else:
                self.actions.append(TimeOut(record, reason))
                return

    def _schedule(self, task: SimpleTask, previous: TaskRecord | None, start_at: float) -> None:
        retry_count = previous.retry_count + 1 if previous else 0
        task_id = task_id_of(self.situation.run.id, task.reference_name, retry_count)
        read = self._reader(task_id)
        given = _object(
            refresh(task.input, previous.input, read) if previous else resolve(task.input, read)
        )
        clash = parallel_writer(
            self.situation.workflow,
            self.latest.values(),
            self.situation.writers,
            task,
            given,
        )
        if clash:
            raise _RunEnds(RunStatus.FAILED, clash)
        record = self._record(task, TaskKind.SIMPLE, Status.SCHEDULED, given)
        record = replace(
            record,
            task_id=task_id,
            task_def_name=task.name,
            retry_count=retry_count,
            start_at=start_at,
        )
        self.latest[task.reference_name] = record
        self.actions.append(Schedule(record, retry_of=previous))
        self._wake(start_at)

    # --- tasks that the broker runs itself -----------------------------------------------------

    def _complete(
        self,
        task: WorkflowTask,
        kind: TaskKind,
        given: Mapping[str, object],
        output: Mapping[str, object],
    ) -> TaskRecord:
        """Run a task that is over the moment it is reached."""
        now = self.situation.now
        record = self._record(task, kind, Status.COMPLETED, given)
        record = replace(record, output=output, started_at=now, ended_at=now)
        return self._keep(record)

    def _add(self, task: WorkflowTask, kind: TaskKind, given: Mapping[str, object]) -> TaskRecord:
        """Begin a task that stays open until a later decision ends it."""
        record = self._record(task, kind, Status.IN_PROGRESS, given)
        return self._keep(replace(record, started_at=self.situation.now))

    def _keep(self, record: TaskRecord) -> TaskRecord:
        self.latest[record.reference_name] = record
        self.actions.append(AddSystemTask(record))
        return record

    def _end(
        self, record: TaskRecord, status: Status, output: Mapping[str, object], reason: str = ""
    ) -> None:
        """End a task that was open."""
        self._update(
            record, status=status, output=output, reason=reason, ended_at=self.situation.now
        )

    def _opened(self, task: WorkflowTask) -> TaskRecord | None:
        """Find a task, open again where the run goes on after its end."""
        record = self.latest.get(task.reference_name)
        if record is None or record.status in SUCCESSFUL | OPEN:
            return record
        if record.generation == self.situation.run.generation:
            raise _RunEnds(
                RunStatus.FAILED,
                f"task {record.reference_name!r} ended {record.status}: {record.reason}",
            )
        return self._update(
            record,
            status=Status.IN_PROGRESS,
            generation=self.situation.run.generation,
            reason="",
            ended_at=None,
        )

    def _update(self, record: TaskRecord, **changes: Any) -> TaskRecord:
        now = replace(record, **changes)
        self.latest[record.reference_name] = now
        # One decision moves a task once: from what the state has to what it is in the end.
        for index, action in enumerate(self.actions):
            match action:
                case AddSystemTask(task) if task.task_id == now.task_id:
                    self.actions[index] = AddSystemTask(now)
                    return now
                case UpdateSystemTask(before, task) if task.task_id == now.task_id:
                    self.actions[index] = UpdateSystemTask(before, now)
                    return now
                case _:
                    pass
        self.actions.append(UpdateSystemTask(record, now))
        return now

    def _record(
        self,
        task: WorkflowTask,
        kind: TaskKind,
        status: Status,
        given: Mapping[str, object],
    ) -> TaskRecord:
        self.seq += 1
        run = self.situation.run
        return TaskRecord(
            run_id=run.id,
            task_id=task_id_of(run.id, task.reference_name, 0),
            seq=self.seq,
            reference_name=task.reference_name,
            task_def_name=str(kind) if kind in _NAMED_BY_KIND else task.name,
            kind=kind,
            retry_count=0,
            generation=run.generation,
            status=status,
            input=given,
            start_at=self.situation.now,
            scheduled_at=self.situation.now,
        )

    # --- the run -------------------------------------------------------------------------------

    def _run_timeout(self) -> None:
        workflow, run = self.situation.workflow, self.situation.run
        if workflow.timeout_seconds <= 0:
            return
        deadline = run.clock_from + workflow.timeout_seconds
        if self.situation.now < deadline:
            self._wake(deadline)
            return
        reason = (
            f"workflow timeoutSeconds {workflow.timeout_seconds:g} exceeded"
            f" (policy {workflow.timeout_policy})"
        )
        if workflow.timeout_policy is TimeoutAction.TIME_OUT_WF:
            raise _RunEnds(RunStatus.TIMED_OUT, reason)
        self.actions.append(Alert(run.id, reason))

    def _output(self) -> dict[str, object]:
        """Resolve outputParameters; without them the output of the last task is the run's.

        The last one that was added, as in Conductor: not the last one that ended.
        """
        wanted = self.situation.workflow.output_parameters
        if wanted:
            return _object(resolve(wanted, self._reader()))
        last = max(self.latest.values(), key=lambda task: task.seq, default=None)
        return dict(last.output) if last else {}

    def _reader(self, task_id: str = "") -> Read:
        workflow = self.situation.workflow
        variables = variables_of(workflow, self.situation.tasks)
        scope = workflow_scope(workflow, self.situation.run, variables)
        return reader(scope, self.latest.values(), task_id)

    def _wake(self, at: float) -> None:
        """Ask to be asked again; what is due already waits for an executor, not for time."""
        if at > self.situation.now:
            self.wake_at = at if self.wake_at is None else min(self.wake_at, at)


def _object(value: object) -> dict[str, object]:
    """Narrow the type: a template that is an object resolves to an object."""
    return dict(value) if isinstance(value, Mapping) else {}
