"""What happens next in a run: a pure function in the spirit of Conductor's decider.

It looks at the definition and at every attempt so far and answers with actions; the runner
carries them out in one transaction and asks again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from perago.brokers.local.actions import (
    Alert,
    CancelTask,
    ContinueWithErrors,
    EndRun,
    ReopenChild,
    Schedule,
    StartChild,
    TimeOut,
)
from perago.brokers.local.draft import Decision, Draft, RunEnds, RunSituation
from perago.protocol.values import Status
from perago.workflow.controls import TimeoutAction
from perago.workflow.expressions import as_text, refresh, resolve
from perago.workflow.forking import ForkInputError, forked, kept
from perago.workflow.javascript import ScriptError, as_case, evaluate, is_true
from perago.workflow.looping import ROUND, condition_input, output_after
from perago.workflow.records import (
    OPEN,
    SUCCESSFUL,
    RunStatus,
    TaskRecord,
    task_id_of,
)
from perago.workflow.retry import Retry, after_failure
from perago.workflow.subworkflow import CHILD_ID, child_of, end_of_child, input_of
from perago.workflow.tasks import (
    DynamicForkTask,
    ForkTask,
    JoinTask,
    LoopTask,
    SetVariableTask,
    SimpleTask,
    SubWorkflowTask,
    SwitchTask,
    TaskKind,
    Tasks,
    TerminateTask,
    WaitTask,
    WorkflowTask,
    every,
)
from perago.workflow.termination import end_of, output_of
from perago.workflow.waiting import WaitInputError, due_at
from perago.workflow.writers import beside_step, parallel_writer

__all__ = ["Decision", "RunSituation", "decide"]

Attempted = SimpleTask | SubWorkflowTask
"""What is tried again when it fails."""
_ENDS: Final = {
    Status.TIMED_OUT: RunStatus.TIMED_OUT,
    Status.CANCELED: RunStatus.TERMINATED,
}
"""How a run ends with a step that ended like this; it fails with all others."""


def decide(situation: RunSituation) -> Decision:
    """Return what to do next; nothing when the run is over."""
    if situation.run.status is not RunStatus.RUNNING:
        return Decision()
    return _Decider(situation).decide()


@dataclass(slots=True)
class _Decider(Draft):
    """One walk over the definition, against the latest attempt of each task."""

    def decide(self) -> Decision:
        for task in self.situation.tasks:
            self.latest[task.reference_name] = task
            self.seq = max(self.seq, task.seq)
            if task.kind is TaskKind.FORK_JOIN_DYNAMIC:
                self.forks |= dict.fromkeys(kept(task.input).names, task.step)
        try:
            self._run_timeout()
            finished = self._sequence(self.situation.workflow.tasks)
        except RunEnds as end:
            return self._cut_short(end)
        if finished and not self.branches_open:
            self.actions.append(EndRun(RunStatus.COMPLETED, self._output()))
        return Decision(tuple(self.actions), self.wake_at)

    def _cut_short(self, ended: RunEnds) -> Decision:
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

    def _task(self, task: WorkflowTask) -> bool:  # noqa: C901, PLR0911 - one for each kind
        match task:
            case SimpleTask():
                return self._simple(task)
            case ForkTask():
                return self._fork(task)
            case DynamicForkTask():
                return self._dynamic_fork(task)
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
            case LoopTask():
                return self._loop(task)
            case SubWorkflowTask():
                return self._sub_workflow(task)

    def _fork(self, task: ForkTask) -> bool:
        if self._name(task) not in self.latest:
            self._complete(task, TaskKind.FORK_JOIN, {}, {})
        # Not all(): every branch moves, whatever the others do.
        finished = [self._sequence(branch) for branch in task.branches]
        self.branches_open = self.branches_open or not all(finished)
        return True

    def _dynamic_fork(self, task: DynamicForkTask) -> bool:
        record = self.latest.get(self._name(task))
        if record is None:
            given = _object(resolve(task.input, self._reader()))
            taken = {each.reference_name for each in every(self.situation.workflow.tasks)}
            try:
                found = forked(task, given, self.situation.controls, taken)
            except ForkInputError as error:
                raise RunEnds(RunStatus.FAILED, str(error)) from None
            told = {**given, **found.as_input}
            record = self._complete(task, TaskKind.FORK_JOIN_DYNAMIC, told, {})
        tasks = kept(record.input).tasks()
        self.forks |= dict.fromkeys(kept(record.input).names, task.reference_name)
        finished = [self._simple(each) for each in tasks]
        self.branches_open = self.branches_open or not all(finished)
        return True

    def _joined(self, task: JoinTask) -> list[str]:
        """Name the tasks that a JOIN waits for."""
        if not task.fork:
            return list(task.join_on)
        return kept(self.latest[self._in_round(task.fork)].input).names

    def _join(self, task: JoinTask) -> bool:
        record, names = self._opened(task), self._joined(task)
        if record is None:
            # As in Conductor it is there from the beginning of its fork, and waits.
            record = self._add(task, TaskKind.JOIN, {"joinOn": names})
        if record.status in SUCCESSFUL:
            return True
        joined = [self.latest.get(self._in_round(name)) for name in names]
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
        record = self._opened(task)
        if record is None:
            given = _object(resolve(task.input, self._reader()))
            record = self._add(task, TaskKind.SWITCH, given)
        if record.status in OPEN:
            try:
                value = _case(task, record.input)
            except ScriptError as error:
                self._end(record, Status.FAILED, {}, str(error))
                return False
            record = self._choose(task, record, value)
        return self._sequence(task.chosen(str(record.input["case"])))

    def _choose(self, task: SwitchTask, record: TaskRecord, value: str) -> TaskRecord:
        more = {"hasChildren": "true"} if task.chosen(value) else {}
        return self._update(
            record,
            status=Status.COMPLETED,
            input={**record.input, "case": value, **more},
            output={"evaluationResult": [value], "selectedCase": value},
            ended_at=self.situation.now,
        )

    def _set_variable(self, task: SetVariableTask) -> bool:
        if self._name(task) in self.latest:
            return True
        given = _object(resolve(task.input, self._reader()))
        self._complete(task, TaskKind.SET_VARIABLE, given, {})
        # As in Conductor: what follows is decided after all that can begin now.
        return False

    def _loop(self, task: LoopTask) -> bool:
        record = self._opened(task)
        if record is None:
            given = _object(resolve(task.input, self._reader()))
            record = self._add(task, TaskKind.DO_WHILE, given)
            self._update(record, iteration=1, output={ROUND: 1})
            return False
        if record.status in SUCCESSFUL:
            return True
        if self._round(task, record):
            self._next_round(task, record)
        return False

    def _round(self, task: LoopTask, record: TaskRecord) -> bool:
        """Walk the body; return whether every step of this round is over."""
        beside, self.branches_open = self.branches_open, False
        self.iteration = record.iteration
        finished = self._sequence(task.body)
        self.iteration = 0
        finished, self.branches_open = finished and not self.branches_open, beside
        return finished

    def _next_round(self, task: LoopTask, record: TaskRecord) -> None:
        tasks = self.latest.values()
        output = output_after(task, record, tasks)
        given = _object(resolve(task.input, self._reader()))
        try:
            again = evaluate(task.condition, condition_input(task, given, output, tasks))
        except ScriptError as error:
            reason = f"loopCondition {task.condition!r} failed: {error}"
            self._end(record, Status.FAILED_WITH_TERMINAL_ERROR, output, reason)
            return
        if is_true(again):
            coming = record.iteration + 1
            self._update(record, iteration=coming, output={**output, ROUND: coming})
        else:
            self._end(record, Status.COMPLETED, output)

    def _terminate(self, task: TerminateTask) -> bool:
        record = self.latest.get(self._name(task))
        if record is None:
            given = _object(resolve(task.input, self._reader()))
            self._complete(task, TaskKind.TERMINATE, given, output_of(given))
            # The run ends with the next decision: what begins beside it is there, and cancelled.
            return False
        raise RunEnds(*end_of(record.input, record.task_id), record.output)

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
        record = self.latest.get(self._name(task))
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

    # --- sub workflows -------------------------------------------------------------------------

    def _sub_workflow(self, task: SubWorkflowTask) -> bool:
        record = self.latest.get(self._name(task))
        if record is None:
            self._call(task, None, self.situation.now + task.start_delay)
            return False
        if record.status in SUCCESSFUL:
            return True
        if record.status in OPEN:
            self._follow(task, record)
            return False
        if record.generation < self.situation.run.generation:
            self._call_again(record)
            return False
        return self._failed(task, record)

    def _call(self, task: SubWorkflowTask, previous: TaskRecord | None, start_at: float) -> None:
        """Add an attempt; its run begins when its time has come, which is at once as a rule."""
        retry_count = previous.retry_count + 1 if previous else 0
        task_id = task_id_of(self.situation.run.id, self._name(task), retry_count)
        given = _object(resolve(task.input, self._reader(task_id)))
        # As in Conductor: a retry has what its predecessor had, and the input beside it.
        told = {**previous.input, **given} if previous else input_of(task, given)
        record = self._record(task, TaskKind.SUB_WORKFLOW, Status.SCHEDULED, told)
        record = replace(record, task_id=task_id, retry_count=retry_count, start_at=start_at)
        self._follow(task, self._keep(record))

    def _follow(self, task: SubWorkflowTask, record: TaskRecord) -> None:
        """Begin the run of an attempt, or end the attempt with its run."""
        now, child = self.situation.now, self.situation.family.child(record.task_id)
        if child is not None:
            if child.status is not RunStatus.RUNNING:
                self._end(record, *end_of_child(child))
        elif now < record.start_at:
            self._wake(record.start_at)
        elif record.status is Status.SCHEDULED:
            child = child_of(task, record, self.situation.run, now)
            self._update(
                record, status=Status.IN_PROGRESS, started_at=now, output={CHILD_ID: child.id}
            )
            self.actions.append(StartChild(child))

    def _call_again(self, record: TaskRecord) -> None:
        """Go on with the run of an attempt after the end of both: what it completed stays."""
        child = self.situation.family.child(record.task_id)
        self._update(
            record,
            status=Status.SCHEDULED if child is None else Status.IN_PROGRESS,
            generation=self.situation.run.generation,
            reason="",
            ended_at=None,
        )
        if child is not None and child.status is not RunStatus.COMPLETED:
            self.actions.append(ReopenChild(child))

    # --- attempts ------------------------------------------------------------------------------

    def _failed(self, task: Attempted, record: TaskRecord) -> bool:
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
            self._again(task, record, ended + verdict.delay_seconds)
            return False
        timed_out = record.status is Status.TIMED_OUT
        ends_run = timed_out and controls.timeout_policy is TimeoutAction.TIME_OUT_WF
        if task.optional and not ends_run:
            self.actions.append(ContinueWithErrors(record))
            self.latest[self._name(task)] = replace(record, status=Status.COMPLETED_WITH_ERRORS)
            return True
        raise RunEnds(
            _ENDS.get(record.status, RunStatus.FAILED),
            f"task {self._name(task)!r} ended {record.status} at attempt"
            f" {record.retry_count + 1}, {verdict.why}: {record.reason or 'no reason given'}",
        )

    def _again(self, task: Attempted, record: TaskRecord, start_at: float) -> None:
        if isinstance(task, SubWorkflowTask):
            self._call(task, record, start_at)
        else:
            self._schedule(task, record, start_at)

    def _failures(self, task: Attempted) -> int:
        """Count the failures that use up retries: not lost, not from before a resume."""
        return sum(
            1
            for record in self._attempts(task)
            if not record.lost and record.status not in OPEN | {Status.CANCELED}
        )

    def _first_scheduled(self, task: Attempted) -> float:
        """Where the total timeout begins: time before a resume does not count."""
        begin = self.situation.run.clock_from
        return max(begin, min((r.scheduled_at for r in self._attempts(task)), default=begin))

    def _attempts(self, task: Attempted) -> list[TaskRecord]:
        return [
            record
            for record in self.situation.tasks
            if record.reference_name == self._name(task)
            and record.generation == self.situation.run.generation
        ]

    def _watch(self, task: SimpleTask, record: TaskRecord) -> None:
        """Look at the deadlines of an open attempt."""
        if task.kind is TaskKind.HUMAN:
            return  # As in Conductor: no timeout of a task ends what a person does.
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
        task_id = task_id_of(self.situation.run.id, self._name(task), retry_count)
        read = self._reader(task_id)
        given = _object(
            refresh(task.input, previous.input, read) if previous else resolve(task.input, read)
        )
        if clash := parallel_writer(self._beside(task), self.situation.writers, task, given):
            raise RunEnds(RunStatus.FAILED, clash)
        record = self._record(task, task.kind, Status.SCHEDULED, given)
        record = replace(
            record,
            task_id=task_id,
            task_def_name=task.name,
            retry_count=retry_count,
            start_at=start_at,
        )
        if task.kind is TaskKind.HUMAN:
            # As in Conductor: it is there for people at once, also after a failure.
            now = self.situation.now
            record = replace(record, status=Status.IN_PROGRESS, start_at=now, started_at=now)
        self.latest[self._name(task)] = record
        self.actions.append(Schedule(record, retry_of=previous))
        self._wake(start_at)

    def _beside(self, task: SimpleTask) -> Iterator[TaskRecord]:
        """List the work that may go on beside a task: in this run, below it and around it."""
        workflow, family = self.situation.workflow, self.situation.family
        step = task.reference_name
        for other in beside_step(workflow, self.latest.values(), step, self.forks):
            yield from family.work_in(other)
        yield from family.beside(self.situation.run)

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
            raise RunEnds(RunStatus.TIMED_OUT, reason)
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


def _case(task: SwitchTask, given: Mapping[str, object]) -> str:
    if task.script:
        return as_case(evaluate(task.expression, given))
    return as_text(given.get(task.expression))


def _object(value: object) -> dict[str, object]:
    """Narrow the type: a template that is an object resolves to an object."""
    return dict(value) if isinstance(value, Mapping) else {}
