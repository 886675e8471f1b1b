"""Run one definition on a real Conductor and in the local broker, and describe both alike.

The work of a step is written in its input: ``give`` is what it gives (``{"n": <its n>}`` where
there is none), ``status`` how it ends, and a step with ``hold`` never ends.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from perago.brokers.conductor.client import ConductorClient
from perago.brokers.local.broker import LocalBroker
from perago.brokers.local.human import LocalHumanTasks
from perago.brokers.local.runner import Runner, TaskTable
from perago.brokers.local.state import State
from perago.clock import SystemClock
from perago.process.reports import Report
from perago.protocol.outcome import Outcome
from perago.protocol.values import Claim, Status
from perago.workflow.controls import Controls
from perago.workflow.records import RunRecord, RunStatus
from perago.workflow.subworkflow import with_children
from tests.broker.scripted import HANGS, Deed, ManualClock, ScriptedPool
from tests.patience import until

Json = dict[str, Any]
TASK: Final = "differential_step"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_NAME = re.compile(r"differential_[0-9a-f]{12}")
_BY_PARENT = re.compile(r"(?<=Parent workflow has been terminated with reason: ).*")
_OVER: Final = frozenset({"COMPLETED", "FAILED", "TIMED_OUT", "TERMINATED"})


@dataclass(frozen=True)
class Case:
    """A workflow and its input; ``children`` are those it calls, in ``$0``, ``$1`` and so on."""

    tasks: list[Json]
    given: Json = field(default_factory=dict)
    more: Json = field(default_factory=dict)
    children: tuple[Case, ...] = ()
    ends: str = ""
    """Which workflow is terminated from outside once its first step is under way."""

    def definitions(self) -> list[Json]:
        """Return those that it calls, then its own."""
        found: list[Json] = []
        for each in (*self.children, self):
            definition = each.definition()
            for number, other in enumerate(found):
                definition = _renamed(definition, f"${number}", other["name"])
            found.append(definition)
        return found

    def definition(self) -> Json:
        return {
            "name": f"differential_{uuid.uuid4().hex[:12]}",
            "version": 1,
            "schemaVersion": 2,
            "ownerEmail": "data@example.com",
            "timeoutSeconds": 0,
            "timeoutPolicy": "ALERT_ONLY",
            "tasks": self.tasks,
            **self.more,
        }


def register(client: ConductorClient) -> None:
    """Tell the server of the one task that all cases use."""
    controls = {"retryCount": 0, "retryDelaySeconds": 0, "timeoutPolicy": "RETRY"}
    limits = {"responseTimeoutSeconds": 600, "timeoutSeconds": 0}
    client.put_taskdefs([{"name": TASK, "ownerEmail": "data@example.com", **controls, **limits}])


def on_conductor(client: ConductorClient, case: Case) -> Json:
    """Run a case on the server, as its only worker."""
    definitions = case.definitions()
    client.put_workflows(definitions)
    workflow_id = client.start_workflow(definitions[-1]["name"], case.given)

    def ended() -> Json | None:
        found = client.execution(workflow_id)
        by_hand = _left_to_people(client, found) if found else []
        for task in [*client.poll(TASK, "differential", 10), *by_hand]:
            outcome = _outcome(task["inputData"])
            if outcome is not None:
                client.update(
                    {
                        "workflowInstanceId": task["workflowInstanceId"],
                        "taskId": task["taskId"],
                        "status": str(outcome.status),
                        "outputData": dict(outcome.output),
                        "reasonForIncompletion": outcome.reason or None,
                    }
                )
        found = client.execution(workflow_id)
        if found and case.ends:
            _end_from_outside(client, found, case.ends)
        return found if found and found["status"] in _OVER else None

    described = _on_conductor(client, until(ended, "the end of the workflow", every=0.05))
    if case.ends == "parent":
        # A run that is ended from outside has no output here, and that of its last step there.
        described["output"] = {}
    return described


def _on_conductor(client: ConductorClient, found: Json) -> Json:
    tasks = [
        _task(
            task["referenceTaskName"],
            task["retryCount"],
            _settled(task),
            task["inputData"],
            task["outputData"],
        )
        for task in found["tasks"]
    ]
    reason = found.get("reasonForIncompletion") or ""
    described = _described(found["status"], found.get("output") or {}, reason, tasks)
    for task in found["tasks"]:
        if child_id := task.get("subWorkflowId"):
            described["tasks"][f"{task['referenceTaskName']} {task['retryCount']}"]["run"] = (
                _on_conductor(client, until(_over(client, child_id), "the end of a child"))
            )
    return described


def _over(client: ConductorClient, workflow_id: str) -> Callable[[], Json | None]:
    def look() -> Json | None:
        found = client.execution(workflow_id)
        return found if found and found["status"] in _OVER else None

    return look


def _end_from_outside(client: ConductorClient, found: Json, which: str) -> None:
    """Terminate a workflow or what it calls, when the first step of the latter is under way."""
    for task in found["tasks"]:
        child = client.execution(task["subWorkflowId"]) if task.get("subWorkflowId") else None
        if child and any(inner["status"] == "IN_PROGRESS" for inner in child["tasks"]):
            ended = found if which == "parent" else child
            if ended["status"] not in _OVER:
                client.terminate(ended["workflowId"], "enough")


def _left_to_people(client: ConductorClient, found: Json) -> list[Json]:
    inside = [
        child
        for task in found["tasks"]
        if task.get("subWorkflowId") and (child := client.execution(task["subWorkflowId"]))
    ]
    deeper = [task for child in inside for task in _left_to_people(client, child)]
    return [*(task for task in found["tasks"] if _is_open(task)), *deeper]


def _is_open(task: Mapping[str, Any]) -> bool:
    return (task["taskType"], task["status"]) == ("HUMAN", "IN_PROGRESS")


def _settled(task: Mapping[str, Any]) -> str:
    """Return the status of a task; a JOIN that the server looks at between the failure of a step
    and the end of the workflow has failed, too, and is cancelled otherwise.
    """
    status = str(task["status"])
    return "CANCELED" if (task["taskType"], status) == ("JOIN", "FAILED") else status


def here(directory: Path, case: Case) -> Json:
    """Run a case in the local broker, in time that passes at once."""
    clock = ManualClock(SystemClock().now())
    pool = _AsTold(clock)
    with State(directory / f"{uuid.uuid4().hex}.sqlite") as state:
        runner = Runner(
            state=state,
            pool=pool,
            tasks=TaskTable({TASK: Controls(retry_count=0, retry_delay_seconds=0)}),
            lock_directory=directory,
            clock=clock,
        )
        *children, definition = case.definitions()
        known = {child["name"]: child for child in children}
        filled, problems = with_children(definition, lambda name, _: known.get(name), "workflow")
        assert problems == []
        if case.ends:
            pool.look = lambda: _end_here(state, clock, case.ends)
        run = runner.run(runner.create(filled, case.given).id)
        while run.status is RunStatus.RUNNING:
            for task in LocalHumanTasks(state).waiting():
                if outcome := _outcome(task.input):
                    LocalBroker(state, clock).report(task.attempt, outcome)
            run = runner.resume(run.id)
        return _here(state, run)


def _here(state: State, run: RunRecord) -> Json:
    tasks = [
        _task(task.reference_name, task.retry_count, task.status, task.input, task.output)
        for task in state.tasks(run.id)
    ]
    described = _described(str(run.status), run.output, run.reason, tasks)
    for child in state.family(run.id):
        if child.parent == run.id and (step := state.task(child.parent_task)):
            name = f"{step.reference_name} {step.retry_count}"
            described["tasks"][name]["run"] = _here(state, child)
    return described


def _end_here(state: State, clock: ManualClock, which: str) -> None:
    parent = state.started_runs()[0]
    for child in state.family(parent.id)[1:]:
        if any(task.status is Status.IN_PROGRESS for task in state.tasks(child.id)):
            ended = parent if which == "parent" else child
            state.terminate(ended.id, "enough", clock.now())


@dataclass
class _AsTold(ScriptedPool):
    """Executors that do what the input says."""

    look: Callable[[], None] | None = None

    def poll(self, timeout_seconds: float) -> list[Report]:
        found = super().poll(timeout_seconds)
        if self.look is not None:
            self.look()
        return found

    def submit(self, claim: Claim, executor_id: str) -> None:
        outcome = _outcome(claim.input)
        deed = HANGS if outcome is None else Deed(outcome=outcome)
        number = claim.attempt.retry_count
        script = self.script.setdefault(claim.attempt.reference_task_name, [])
        script[:] = [deed] * (number + 1)  # in each child there may be a step of this name
        super().submit(claim, executor_id)


def _outcome(given: Mapping[str, Any]) -> Outcome | None:
    if given.get("hold"):
        return None
    status = Status(given.get("status", "COMPLETED"))
    reason = "" if status is Status.COMPLETED else "because"
    return Outcome(status, given.get("give", {"n": given.get("n")}), reason=reason)


def _task(name: str, retry: int, status: str, given: object, output: object) -> tuple[str, Json]:
    found: Json = {"status": str(status), "input": given}
    if isinstance(given, Mapping) and "forkedTaskDefs" in given:
        # The server writes every field of a task there.
        found["input"] = {key: each for key, each in given.items() if key != "forkedTaskDefs"}
    if isinstance(given, Mapping) and "subWorkflowName" in given:
        # The server writes the definition there, too, where it stands in the step.
        found["input"] = {**given, "subWorkflowDefinition": None}
    if status != Status.CANCELED:
        # What an open JOIN or loop has gathered so far depends on when it was last looked at.
        found["output"] = output
    return f"{name} {retry}", found


def _renamed(value: Any, name: str, called: str) -> Any:
    if isinstance(value, Mapping):
        return {key: _renamed(inner, name, called) for key, inner in value.items()}
    if isinstance(value, list):
        return [_renamed(inner, name, called) for inner in value]
    return called if value == name else value


def _described(status: str, output: object, reason: str, tasks: list[tuple[str, Json]]) -> Json:
    assert len(dict(tasks)) == len(tasks)
    described = {"status": status, "output": output, "tasks": dict(sorted(tasks))}
    cancelled = status == "TERMINATED" and any("subWorkflowName" in t["input"] for _, t in tasks)
    if tasks and not cancelled and not any("FAILED" in task["status"] for _, task in tasks):
        # Each broker has its own words for a step that failed, or whose child was terminated.
        described["reason"] = _BY_PARENT.sub("<reason>", reason)
    without_ids: Json = _without_ids(described)
    return without_ids


def _without_ids(value: Any) -> Any:
    if isinstance(value, str):
        return _NAME.sub("<name>", _UUID.sub("<id>", value))
    if isinstance(value, Mapping):
        return {key: _without_ids(inner) for key, inner in value.items()}
    return [_without_ids(inner) for inner in value] if isinstance(value, list) else value
