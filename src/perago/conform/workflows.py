"""The Conductor side of a case: workflows of one task, started, watched and interfered with.

The definitions travel with the start of the workflow: nothing is registered, and a definition of
the task that is registered is neither needed nor changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from perago.brokers.conductor.client import Ask, ConductorClient
from perago.brokers.conductor.errors import Call
from perago.brokers.conductor.mapping import attempt_of
from perago.errors import BrokerError, RuntimeConfigError
from perago.protocol.evidence import CONFORM, AttemptRecord
from perago.protocol.names import staging_branch
from perago.transfer.wire import path_of
from perago.workflow.progress import OVER

RETRY_SECONDS: Final = 3
"""Between a failure and the next attempt: the time to plant an abandoned publication."""
_PAUSE_SECONDS: Final = 0.05
_QUIET_SECONDS: Final = 5.0
"""How long something is waited for without a word."""
_T = TypeVar("_T")


@dataclass(frozen=True)
class TaskWorkflows:
    """Workflows of the task under examination."""

    client: ConductorClient
    task: str
    seconds: float
    """How long a worker may take for one thing."""
    alive: Callable[[], None] = lambda: None
    """Raises when the worker is known to have ended."""
    note: Callable[[str], None] = lambda _: None
    """Told what is being waited for, when it takes long."""

    def start(
        self,
        *inputs: Mapping[str, object],
        retries: int = 0,
        step: str = "step",
        response_seconds: int = 0,
    ) -> str:
        """Start a workflow with one step for each input, one after the other."""
        return self._start(self.task, inputs, retries, step, response_seconds)

    def open_task(self) -> dict[str, Any]:
        """Start a workflow whose task no worker polls for: it stays open until it is ended."""
        workflow = self._start(f"{self.task}_unowned", [{"params": {}}], 0, "unowned", 0)
        return self._waited(lambda: next(iter(self.attempts(workflow)), None), 10.0, "a task") or {}

    def _start(
        self,
        task: str,
        inputs: Sequence[Mapping[str, object]],
        retries: int,
        step: str,
        response_seconds: int,
    ) -> str:
        name = f"perago_conform_{self.task}"
        definition = {
            "name": name,
            "version": 1,
            "schemaVersion": 2,
            "ownerEmail": "conform@example.com",
            "tasks": [
                {
                    "name": task,
                    "taskReferenceName": f"{step}{number}",
                    "type": "SIMPLE",
                    "inputParameters": dict(given),
                    "taskDefinition": self._taskdef(task, retries, response_seconds),
                }
                for number, given in enumerate(inputs)
            ],
        }
        body = {"name": name, "version": 1, "input": {}, "workflowDef": definition}
        ask = Ask("start workflow", "POST", path_of("workflow"), Call.ONCE, body=body, plain=True)
        return str(self.client.ask(ask))

    def _taskdef(self, task: str, retries: int, response_seconds: int) -> dict[str, object]:
        return {
            "name": task,
            "ownerEmail": "conform@example.com",
            "retryCount": retries,
            "retryLogic": "FIXED",
            "retryDelaySeconds": RETRY_SECONDS,
            "timeoutSeconds": 0,
            "timeoutPolicy": "RETRY",
            "responseTimeoutSeconds": response_seconds or max(60, round(2 * self.seconds)),
        }

    def attempts(self, workflow_id: str, number: int = 0) -> list[dict[str, Any]]:
        """Return the attempts of one step, oldest first."""
        found = (self.client.execution(workflow_id) or {}).get("tasks", [])
        steps: dict[str, list[dict[str, Any]]] = {}
        for task in sorted(found, key=lambda task: int(task.get("seq") or 0)):
            steps.setdefault(task["referenceTaskName"], []).append(task)
        mine = [*steps.values()][number] if number < len(steps) else []
        return sorted(mine, key=lambda task: int(task.get("retryCount") or 0))

    def claimed(self, workflow_id: str, retry: int = 0, number: int = 0) -> dict[str, Any]:
        """Wait until a worker has taken an attempt."""

        def look() -> dict[str, Any] | None:
            found = self.attempts(workflow_id, number)
            return next(
                (t for t in found if t["retryCount"] == retry and t["status"] != "SCHEDULED"), None
            )

        task = self._waited(look, self.seconds, "the worker to take a task")
        if task is None:
            self.terminate(workflow_id)
            raise RuntimeConfigError(
                f"no worker took task {self.task!r} within {self.seconds:g} s",
                remedy="start the worker that polls for it, or let --command start it",
            )
        return task

    def failed(self, workflow_id: str) -> dict[str, Any] | None:
        """Wait until the first attempt is over; None when it is not in time."""
        self.claimed(workflow_id)

        def look() -> dict[str, Any] | None:
            first = self.attempts(workflow_id)[0]
            return None if first["status"] == "IN_PROGRESS" else first

        return self._waited(look, self.seconds, "the end of the first attempt")

    def end(self, workflow_id: str, more_seconds: float = 0.0) -> bool:
        """Wait until a workflow has ended; tell whether it did."""

        def look() -> bool:
            return (self.client.execution(workflow_id) or {}).get("status") in OVER

        self.claimed(workflow_id)
        return bool(self._waited(look, self.seconds + more_seconds, "the attempt to end"))

    def take_away(self, task: Mapping[str, Any], why: str) -> None:
        """Fail an attempt in the place of its worker; Conductor hands out the next one."""
        self.client.update(
            {
                "workflowInstanceId": task["workflowInstanceId"],
                "taskId": task["taskId"],
                "status": "FAILED",
                "reasonForIncompletion": f"{CONFORM}: {why}",
                "workerId": "perago-conform",
            }
        )

    def terminate(self, workflow_id: str) -> None:
        """End a workflow, whatever its tasks do; one that has ended stays as it is."""
        with suppress(BrokerError):
            self.client.terminate(workflow_id, f"{CONFORM}: ended on purpose")

    def rerun(self, task: Mapping[str, Any]) -> bool:
        """Have a task handed out a second time, and take it; tell whether it was ours to take.

        It keeps its id and its retry count: only its start tells the two apart.
        """
        path = path_of("workflow", str(task["workflowInstanceId"]), "rerun")
        body = {"reRunFromTaskId": task["taskId"]}
        self.client.ask(Ask("rerun", "POST", path, Call.ONCE, body=body, plain=True))
        path = path_of("tasks", "poll", "batch", self.task)
        query = {"workerid": "perago-conform", "count": 1, "timeout": 1000}
        ask = Ask("poll", "GET", path, Call.ONCE, query=query)
        found = self.client.ask(ask)
        return [one["taskId"] for one in found or ()] == [task["taskId"]]

    def log_of(self, task_id: str) -> str:
        """Read the log that a worker wrote for a task."""
        ask = Ask(f"read log of {task_id}", "GET", path_of("tasks", task_id, "log"))
        found = self.client.ask(ask)
        lines: Sequence[Any] = found if isinstance(found, list) else ()
        return "\n".join(str(line.get("log", "")) for line in lines if isinstance(line, dict))

    def _waited(self, look: Callable[[], _T | None], seconds: float, what: str) -> _T | None:
        """Look until there is something to see, or the time is over."""
        began, told = time.monotonic(), False
        while not (found := look()):
            self.alive()
            waited = time.monotonic() - began
            if waited > seconds:
                return None
            if waited > _QUIET_SECONDS and not told:
                told = True
                self.note(f"waiting for {what}, {seconds:.0f} s at most")
            time.sleep(_PAUSE_SECONDS)
        return found


def record_of(task: Mapping[str, Any]) -> AttemptRecord:
    """Read what Conductor says of an attempt."""
    attempt = attempt_of(task)
    return AttemptRecord(
        task_id=attempt.task_id,
        retry_count=attempt.retry_count,
        status=str(task.get("status") or ""),
        output=task.get("outputData") or {},
        reason=str(task.get("reasonForIncompletion") or ""),
        workflow_instance_id=attempt.workflow_instance_id,
        logical_task_key=attempt.logical_task_key,
        task=attempt.task_def_name,
        staging=staging_branch(attempt, ""),
    )
