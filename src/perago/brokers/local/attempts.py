"""Attempts in a decision: which begins, which is tried again, and what that ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from perago.brokers.local.actions import (
    Alert,
    ContinueWithErrors,
    ReopenChild,
    Schedule,
    StartChild,
    TimeOut,
)
from perago.brokers.local.draft import Draft, RunEnds
from perago.protocol.values import Status
from perago.workflow.controls import TimeoutAction
from perago.workflow.expressions import refresh, resolve
from perago.workflow.records import OPEN, SUCCESSFUL, RunStatus, TaskRecord, task_id_of
from perago.workflow.retry import Retry, after_failure
from perago.workflow.subworkflow import CHILD_ID, child_of, end_of_child, input_of
from perago.workflow.tasks import SimpleTask, SubWorkflowTask, TaskKind
from perago.workflow.writers import beside_step, parallel_writer

Attempted = SimpleTask | SubWorkflowTask
"""What is tried again when it fails."""
_ENDS: Final = {
    Status.TIMED_OUT: RunStatus.TIMED_OUT,
    Status.CANCELED: RunStatus.TERMINATED,
}
"""How a run ends with a step that ended like this; it fails with all others."""


@dataclass(slots=True)
class AttemptDraft(Draft):
    """A decision, as far as it is about attempts and the runs of sub workflows."""

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
        given = as_object(
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
        given = as_object(resolve(task.input, self._reader(task_id)))
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


def as_object(value: object) -> dict[str, object]:
    """Narrow the type: a template that is an object resolves to an object."""
    return dict(value) if isinstance(value, Mapping) else {}
