"""One task type of its own on a real Conductor, and the ways to get at its tasks."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from perago.brokers.conductor.client import Ask, ConductorClient
from perago.brokers.conductor.errors import Call
from perago.brokers.conductor.mapping import claim_of
from perago.protocol.outcome import Outcome
from perago.protocol.values import Attempt, Claim, Status
from tests.patience import until

T = TypeVar("T")
OWNER = "data@example.com"
DONE = Outcome(Status.COMPLETED, {"result": {"answer": 42, "nothing": None, "list": [1, {}]}})


def eventually(look: Callable[[], T | None], what: str, every: float = 0.05) -> T:
    """Wait until something is there."""
    return until(look, what, every=every)


@dataclass(frozen=True)
class Lab:
    """A workflow of one task; ``truth`` speaks with the server, past any proxy."""

    truth: ConductorClient
    name: str

    def start(self, **given: Any) -> str:
        return self.truth.start_workflow(self.name, given or {"params": {}})

    def poll(self, worker_id: str = "someone") -> dict[str, Any]:
        """Take a task, whenever it comes."""
        found = eventually(lambda: self.truth.poll(self.name, worker_id, 1), "a task")
        return found[0]

    def claim(self, worker_id: str = "someone") -> Claim:
        """Start a workflow and take its task."""
        self.start()
        return claim_of(self.poll(worker_id), uuid.uuid4().hex)

    def attempt(self) -> Attempt:
        return self.claim().attempt

    def task(self, attempt: Attempt) -> dict[str, Any]:
        found = self.truth.task(attempt.task_id)
        assert found is not None
        return found

    def status(self, attempt: Attempt) -> str:
        return str(self.task(attempt)["status"])

    def act(self, method: str, path: str, body: Any = None) -> None:
        """Do what an operator does."""
        self.truth.ask(Ask("arrange", method, path, Call.ONCE, body=body, plain=True))


def new_lab(truth: ConductorClient, **controls: Any) -> Lab:
    """Register a task type and a workflow that nobody else uses."""
    name = f"lab_{uuid.uuid4().hex[:12]}"
    usual = {
        "name": name,
        "ownerEmail": OWNER,
        "retryCount": 2,
        "retryDelaySeconds": 0,
        "responseTimeoutSeconds": 300,
        "timeoutSeconds": 0,
        "timeoutPolicy": "RETRY",
    }
    truth.put_taskdefs([usual | controls])
    truth.put_workflows(
        [
            {
                "name": name,
                "version": 1,
                "schemaVersion": 2,
                "ownerEmail": OWNER,
                "timeoutSeconds": 0,
                "timeoutPolicy": "ALERT_ONLY",
                "tasks": [
                    {
                        "name": name,
                        "taskReferenceName": "step",
                        "type": "SIMPLE",
                        "inputParameters": {"params": "${workflow.input.params}"},
                    }
                ],
                "outputParameters": {"result": "${step.output.result}"},
            }
        ]
    )
    return Lab(truth, name)
