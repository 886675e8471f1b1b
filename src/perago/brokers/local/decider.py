"""What happens next in a run: a pure function in the spirit of Conductor's decider.

It looks at the definition and at every attempt so far and answers with actions; the runner
carries them out in one transaction and asks again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perago.brokers.local.actions import (
    Alert,
    CancelTask,
    EndRun,
    TimeOut,
)
from perago.brokers.local.attempts import AttemptDraft, as_object
from perago.brokers.local.draft import Decision, RunEnds, RunSituation
from perago.protocol.values import Status
from perago.workflow.controls import TimeoutAction
from perago.workflow.expressions import as_text, resolve
from perago.workflow.forking import ForkInputError, forked, kept
from perago.workflow.javascript import ScriptError, as_case, evaluate, is_true
from perago.workflow.looping import ROUND, condition_input, output_after
from perago.workflow.records import (
    OPEN,
    SUCCESSFUL,
    RunStatus,
    TaskRecord,
)
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

__all__ = ["Decision", "RunSituation", "decide"]


def decide(situation: RunSituation) -> Decision:
    """Return what to do next; nothing when the run is over."""
    if situation.run.status is not RunStatus.RUNNING:
        return Decision()
    return _Decider(situation).decide()


@dataclass(slots=True)
class _Decider(AttemptDraft):
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
            given = as_object(resolve(task.input, self._reader()))
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
            given = as_object(resolve(task.input, self._reader()))
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
        given = as_object(resolve(task.input, self._reader()))
        self._complete(task, TaskKind.SET_VARIABLE, given, {})
        # As in Conductor: what follows is decided after all that can begin now.
        return False

    def _loop(self, task: LoopTask) -> bool:
        record = self._opened(task)
        if record is None:
            given = as_object(resolve(task.input, self._reader()))
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
        given = as_object(resolve(task.input, self._reader()))
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
            given = as_object(resolve(task.input, self._reader()))
            self._complete(task, TaskKind.TERMINATE, given, output_of(given))
            # The run ends with the next decision: what begins beside it is there, and cancelled.
            return False
        raise RunEnds(*end_of(record.input, record.task_id), record.output)

    def _wait(self, task: WaitTask) -> bool:
        record = self._opened(task)
        if record is None:
            record = self._add(task, TaskKind.WAIT, as_object(resolve(task.input, self._reader())))
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
            return as_object(resolve(wanted, self._reader()))
        last = max(self.latest.values(), key=lambda task: task.seq, default=None)
        return dict(last.output) if last else {}


def _case(task: SwitchTask, given: Mapping[str, object]) -> str:
    if task.script:
        return as_case(evaluate(task.expression, given))
    return as_text(given.get(task.expression))
