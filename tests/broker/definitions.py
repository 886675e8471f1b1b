"""Short ways to write Conductor definitions, and a world in memory to run decisions in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from perago.brokers.local.actions import (
    Action,
    AddSystemTask,
    CancelTask,
    ContinueWithErrors,
    EndRun,
    Schedule,
    TimeOut,
    UpdateSystemTask,
)
from perago.brokers.local.decider import Decision, RunSituation, decide
from perago.protocol.values import Status
from perago.workflow.controls import Controls
from perago.workflow.definition import Workflow
from perago.workflow.parsing import parse_workflow
from perago.workflow.records import RunRecord, RunStatus, TaskRecord

Json = dict[str, Any]


def simple(ref: str, name: str = "t", **more: Any) -> Json:
    return {"name": name, "taskReferenceName": ref, "type": "SIMPLE", **more}


def writer(ref: str, workspace: object, name: str = "w") -> Json:
    return simple(ref, name, inputParameters={"workspace": workspace, "params": {}})


def fork(ref: str, *branches: list[Json]) -> Json:
    return {
        "name": "fork",
        "taskReferenceName": ref,
        "type": "FORK_JOIN",
        "forkTasks": list(branches),
    }


def join(ref: str, *names: str) -> Json:
    return {"name": "join", "taskReferenceName": ref, "type": "JOIN", "joinOn": list(names)}


def switch(ref: str, value: object, default: list[Json] | None = None, **cases: list[Json]) -> Json:
    return {
        "name": "switch",
        "taskReferenceName": ref,
        "type": "SWITCH",
        "evaluatorType": "value-param",
        "expression": "on",
        "inputParameters": {"on": value},
        "decisionCases": cases,
        "defaultCase": default or [],
    }


def system(kind: str, ref: str, **given: Any) -> Json:
    """Write a task that the broker runs itself."""
    return {"name": ref, "taskReferenceName": ref, "type": kind, "inputParameters": given}


def loop(ref: str, condition: str, *body: Json, **given: Any) -> Json:
    return {**system("DO_WHILE", ref, **given), "loopCondition": condition, "loopOver": list(body)}


def sub(ref: str, child: Json, *, retries: int | None = None, **given: Any) -> Json:
    """Write a SUB_WORKFLOW with the definition that it runs."""
    param = {"name": child["name"], "version": child["version"], "workflowDefinition": child}
    more = {} if retries is None else {"retryCount": retries}
    return {**system("SUB_WORKFLOW", ref, **given), "subWorkflowParam": param, **more}


def script(ref: str, expression: str, given: Json, **cases: list[Json]) -> Json:
    """Write a SWITCH that a script decides."""
    decided = {"evaluatorType": "javascript", "expression": expression, "inputParameters": given}
    return {**switch(ref, None, **cases), **decided}


def flow(*tasks: Json, **more: Any) -> Json:
    base: Json = {"name": "flow", "version": 1, "schemaVersion": 2, "tasks": list(tasks)}
    return {**base, **more}


def parsed(*tasks: Json, known: Collection[str] = ("t", "w", "r"), **more: Any) -> Workflow:
    return parse_workflow(flow(*tasks, **more), known)


@dataclass
class World:
    """What the state and the executors would do, without either."""

    workflow: Workflow
    given: Mapping[str, object] = field(default_factory=dict)
    controls: Mapping[str, Controls] = field(default_factory=dict)
    writers: frozenset[str] = frozenset()
    jitter: float = 0.0
    now: float = 1000.0
    tasks: dict[str, TaskRecord] = field(default_factory=dict)
    run: RunRecord = field(init=False)

    def __post_init__(self) -> None:
        self.run = RunRecord(
            id="run-1",
            workflow={},
            modules=(),
            input=self.workflow.started_with(self.given),
            status=RunStatus.RUNNING,
            created_at=self.now,
            clock_from=self.now,
            correlation_id="c-1",
        )

    def ask(self) -> Decision:
        decision = decide(
            RunSituation(
                workflow=self.workflow,
                run=self.run,
                tasks=tuple(self.tasks.values()),
                controls=self.controls,
                now=self.now,
                writers=self.writers,
                jitter=self.jitter,
            )
        )
        assert decision.wake_at is None or decision.wake_at > self.now
        return decision

    def settle(self) -> Decision:
        """Carry out decisions until there is nothing to do but wait."""
        for _ in range(100):
            decision = self.ask()
            if not decision.actions:
                return decision
            for action in decision.actions:
                self.carry_out(action)
        raise AssertionError("the decider never comes to rest")

    def carry_out(self, action: Action) -> None:
        match action:
            case Schedule(task) | AddSystemTask(task):
                assert task.task_id not in self.tasks
                self.tasks[task.task_id] = task
            case UpdateSystemTask(task, now):
                assert self.tasks[task.task_id] == task
                self.tasks[task.task_id] = now
            case TimeOut(task, reason):
                self.end(task, Status.TIMED_OUT, reason=reason)
            case CancelTask(task):
                self.end(task, Status.CANCELED, task.output)
            case ContinueWithErrors(task):
                self.tasks[task.task_id] = replace(task, status=Status.COMPLETED_WITH_ERRORS)
            case EndRun(status, output, reason):
                self.run = replace(
                    self.run, status=status, output=output, reason=reason, ended_at=self.now
                )
            case _:
                raise AssertionError(action)

    def open(self, ref: str) -> TaskRecord:
        (task,) = [
            task
            for task in self.tasks.values()
            if task.reference_name == ref and task.status in (Status.SCHEDULED, Status.IN_PROGRESS)
        ]
        return task

    def claim(self, ref: str) -> TaskRecord:
        task = replace(self.open(ref), status=Status.IN_PROGRESS, started_at=self.now)
        self.tasks[task.task_id] = task
        return task

    def end(
        self,
        task: TaskRecord,
        status: Status,
        output: Mapping[str, object] | None = None,
        reason: str = "because",
        *,
        lost: bool = False,
    ) -> None:
        self.tasks[task.task_id] = replace(
            task,
            status=status,
            output=output or {},
            reason="" if status is Status.COMPLETED else reason,
            ended_at=self.now,
            lost=lost,
        )

    def finish(
        self,
        ref: str,
        status: Status = Status.COMPLETED,
        output: Mapping[str, object] | None = None,
        *,
        lost: bool = False,
    ) -> None:
        """Run the open attempt of a task to its end, then decide."""
        self.end(self.claim(ref), status, output, lost=lost)
        self.settle()

    def reopen(self) -> None:
        """Let the run go on after its end, as a resume does."""
        self.run = replace(
            self.run,
            status=RunStatus.RUNNING,
            generation=self.run.generation + 1,
            clock_from=self.now,
        )
        self.settle()

    def attempts(self, ref: str) -> list[TaskRecord]:
        return [task for task in self.tasks.values() if task.reference_name == ref]

    def statuses(self) -> dict[str, str]:
        """Show the latest status of each task."""
        return {task.reference_name: str(task.status) for task in self.tasks.values()}
