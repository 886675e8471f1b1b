"""Run one definition on a real Conductor and in the local broker, and describe both alike.

The work of a step is written in its input: ``give`` is what it gives (``{"n": <its n>}`` where
there is none), ``status`` how it ends, and a step with ``hold`` never ends.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from perago.brokers.conductor.client import ConductorClient
from perago.brokers.local.broker import LocalBroker
from perago.brokers.local.human import LocalHumanTasks
from perago.brokers.local.runner import Runner, TaskTable
from perago.brokers.local.state import State
from perago.clock import SystemClock
from perago.protocol.outcome import Outcome
from perago.protocol.values import Claim, Status
from perago.workflow.controls import Controls
from perago.workflow.records import RunStatus
from tests.broker.scripted import HANGS, Deed, ManualClock, ScriptedPool
from tests.patience import until

Json = dict[str, Any]
TASK: Final = "differential_step"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_OVER: Final = frozenset({"COMPLETED", "FAILED", "TIMED_OUT", "TERMINATED"})


@dataclass(frozen=True)
class Case:
    """A workflow and its input."""

    tasks: list[Json]
    given: Json = field(default_factory=dict)
    more: Json = field(default_factory=dict)

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
    definition = case.definition()
    client.put_workflows([definition])
    workflow_id = client.start_workflow(definition["name"], case.given)

    def ended() -> Json | None:
        found = client.execution(workflow_id)
        by_hand = [task for task in found["tasks"] if _is_open(task)] if found else []
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
        return found if found and found["status"] in _OVER else None

    found = until(ended, "the end of the workflow", every=0.05)
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
    return _described(found["status"], found.get("output") or {}, reason, tasks)


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
    with State(directory / f"{uuid.uuid4().hex}.sqlite") as state:
        runner = Runner(
            state=state,
            pool=_AsTold(clock),
            tasks=TaskTable({TASK: Controls(retry_count=0, retry_delay_seconds=0)}),
            lock_directory=directory,
            clock=clock,
        )
        run = runner.run(runner.create(case.definition(), case.given).id)
        while run.status is RunStatus.RUNNING:
            for task in LocalHumanTasks(state).waiting():
                if outcome := _outcome(task.input):
                    LocalBroker(state, clock).report(task.attempt, outcome)
            run = runner.resume(run.id)
        tasks = [
            _task(task.reference_name, task.retry_count, task.status, task.input, task.output)
            for task in state.tasks(run.id)
        ]
    return _described(str(run.status), run.output, run.reason, tasks)


@dataclass
class _AsTold(ScriptedPool):
    """Executors that do what the input says."""

    def submit(self, claim: Claim, executor_id: str) -> None:
        outcome = _outcome(claim.input)
        deed = HANGS if outcome is None else Deed(outcome=outcome)
        number = claim.attempt.retry_count
        script = self.script.setdefault(claim.attempt.reference_task_name, [])
        script += [deed] * (number + 1 - len(script))
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
    if status != Status.CANCELED:
        # What an open JOIN or loop has gathered so far depends on when it was last looked at.
        found["output"] = output
    return f"{name} {retry}", found


def _described(status: str, output: object, reason: str, tasks: list[tuple[str, Json]]) -> Json:
    assert len(dict(tasks)) == len(tasks)
    described = {"status": status, "output": output, "tasks": dict(sorted(tasks))}
    if tasks and not any("FAILED" in task["status"] for _, task in tasks):
        # Each broker has its own words for a step that failed.
        described["reason"] = reason
    without_ids: Json = _without_ids(described)
    return without_ids


def _without_ids(value: Any) -> Any:
    if isinstance(value, str):
        return _UUID.sub("<id>", value)
    if isinstance(value, Mapping):
        return {key: _without_ids(inner) for key, inner in value.items()}
    return [_without_ids(inner) for inner in value] if isinstance(value, list) else value
