"""The task log on a real Conductor: what an attempt said is there, in few entries."""

from __future__ import annotations

from typing import Any

from perago.brokers.conductor.client import Ask, ConductorClient
from perago.dev import ConductorEndpoint
from perago.observe.secrets import Secrets
from perago.observe.tasklog import TaskLog
from perago.settings import ConductorSettings
from perago.transfer.wire import path_of
from tests.conductor.lab import new_lab
from tests.observe import told


def entries(client: ConductorClient, task_id: str) -> list[str]:
    found: list[dict[str, Any]] = client.ask(
        Ask("read the log of a task", "GET", path_of("tasks", task_id, "log"))
    )
    return [each["log"] for each in found or []]


def test_w8_what_an_attempt_said_is_in_conductors_task_log(
    conductor_server: ConductorEndpoint,
) -> None:
    client = ConductorClient(ConductorSettings(conductor_server.url))
    claim = new_lab(client).claim("w-0001")
    log = TaskLog(client, Secrets(told.SECRETS))
    for number in range(300):
        log.output(claim, "w-0001", "stdout", f"line {number} “é”")
    told.failed(log, claim)
    result = {
        "workflowInstanceId": claim.attempt.workflow_instance_id,
        "taskId": claim.attempt.task_id,
        "status": "FAILED",
    }
    client.update(result)
    log.output(claim, "w-0001", "stdout", "a word after the end")
    log.close(30)
    found = entries(client, claim.attempt.task_id)
    text = "\n".join(found)
    assert len(found) == 2  # Few: the server shows only the last ones.
    assert "line 0 “é”\nline 1 “é”" in text
    assert "Traceback" in text
    assert "a word after the end" in text
    assert not any(secret in text for secret in told.SECRETS)  # V8
    assert log.dropped == 0
    client.close()
