"""Every call of the client on the real server, and what the server makes of it."""

from __future__ import annotations

import json
import math
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from perago.brokers.conductor.client import Ask, ConductorClient
from perago.brokers.conductor.mapping import attempt_of, snapshot_of
from perago.dev import ConductorEndpoint
from perago.errors import (
    BrokerError,
    BrokerUnavailableError,
    NotFoundError,
    StaleAttemptError,
)
from perago.protocol.fence import assert_current_attempt_snapshot
from perago.protocol.values import Attempt
from perago.settings import ConductorSettings
from tests.conductor.lab import OWNER, Lab, eventually, new_lab
from tests.faults.proxy import Proxy
from tests.patience import LIMIT, scaled, until

NOBODY = Attempt("no-workflow", "no-task", 0, "step", "count")


@pytest.mark.parametrize("suffix", ["", "/", "/api", "/api/"])
def test_the_address_may_end_with_api_or_not(
    conductor_server: ConductorEndpoint, suffix: str
) -> None:
    url = conductor_server.url.removesuffix("/api") + suffix
    client = ConductorClient(ConductorSettings(url))
    assert client.health()
    assert client.version().count(".") == 2
    assert client.server_time().endswith("GMT")
    client.close()


def test_a_key_for_a_server_without_accounts_does_no_harm(
    conductor_server: ConductorEndpoint,
) -> None:
    client = ConductorClient(ConductorSettings(conductor_server.url, "key", "secret"))
    assert client.task("no-task") is None
    client.close()


def test_nobody_listening_is_told_at_once() -> None:
    client = ConductorClient(ConductorSettings("http://127.0.0.1:9/api"))
    with pytest.raises(BrokerUnavailableError, match="CONDUCTOR_SERVER_URL"):
        client.poll("count", "w", 1)
    client.close()


def test_what_is_not_there_is_none(truth: ConductorClient) -> None:
    assert truth.task("no-task") is None
    assert truth.taskdef("no_such_task") is None
    assert truth.workflow("no_such_workflow", 1) is None
    assert truth.workflow("no_such_workflow") is None
    assert truth.execution("no-workflow") is None
    with pytest.raises(NotFoundError):
        truth.update({"workflowInstanceId": "no", "taskId": "no", "status": "COMPLETED"})
    with pytest.raises(NotFoundError):
        truth.extend(NOBODY, "w")
    with pytest.raises(NotFoundError, match="no_such"):
        truth.start_workflow("no_such_workflow", {})


def test_a_batch_is_polled_once_each(lab: Lab) -> None:
    started = {lab.start() for _ in range(3)}
    eventually(lambda: queued(lab) == 3, "three tasks in the queue")
    taken = [
        task["workflowInstanceId"] for _ in range(2) for task in lab.truth.poll(lab.name, "w", 2)
    ]
    assert set(taken) == started
    assert lab.truth.poll(lab.name, "w", 2) == []


def test_a_batch_is_no_larger_than_asked(lab: Lab) -> None:
    for _ in range(3):
        lab.start()
    eventually(lambda: queued(lab) == 3, "three tasks in the queue")
    assert len(lab.truth.poll(lab.name, "w", 2)) == 2
    assert len(lab.truth.poll(lab.name, "w", 2)) == 1


def queued(lab: Lab) -> int:
    sizes = lab.truth.ask(Ask("look", "GET", "/tasks/queue/sizes", query={"taskType": lab.name}))
    return int(sizes[lab.name])


def test_the_server_waits_for_work_when_asked_to(
    truth: ConductorClient, faulted: ConductorClient, proxy: Proxy
) -> None:
    def taken() -> list[dict[str, Any]]:
        lab = new_lab(truth)
        polls = "GET", f"/poll/batch/{lab.name}"
        with ThreadPoolExecutor(1) as pool:
            poll = pool.submit(faulted.poll, lab.name, "w", 1, wait_seconds=5.0)
            until(lambda: any(seen.applied for seen in proxy.matching(*polls)), "the poll")
            lab.start()
            return poll.result(LIMIT)

    eventually(taken, "a task that was not there when it was asked for")


def test_domains_are_polled_apart(lab: Lab) -> None:
    body = {"name": lab.name, "input": {"params": {}}, "taskToDomain": {lab.name: "apart"}}
    lab.act("POST", "/workflow", body)
    eventually(lambda: lab.truth.poll(lab.name, "w", 1, domain="apart"), "the task of the domain")
    assert lab.truth.poll(lab.name, "w", 1) == []


def test_w4_an_extended_lease_outlives_the_response_timeout(truth: ConductorClient) -> None:
    """And it neither requeues the task nor takes it from its worker."""
    lease = math.ceil(scaled(5))
    lab = new_lab(truth, responseTimeoutSeconds=lease)
    attempt = lab.claim("holder").attempt

    def held() -> dict[str, Any] | None:
        truth.extend(attempt, "holder")
        assert truth.poll(lab.name, "thief", 1) == []
        task = lab.task(attempt)
        return task if task["updateTime"] - task["startTime"] > 2.5 * 1000 * lease else None

    task = eventually(held, "more than two leases", every=0.3)
    assert (task["status"], task["workerId"], task["pollCount"]) == ("IN_PROGRESS", "holder", 1)


def test_a_lease_that_is_not_extended_ends_and_a_retry_with_an_id_of_its_own_comes(
    truth: ConductorClient,
) -> None:
    """Once it was extended, this server notices the end only within about two minutes."""
    lab = new_lab(truth, responseTimeoutSeconds=1)
    attempt = lab.attempt()
    retry = lab.poll()
    assert retry["taskId"] != attempt.task_id
    assert retry["retryCount"] == 1
    assert lab.status(attempt) == "TIMED_OUT"


@pytest.mark.parametrize("status", ["COMPLETED", "FAILED_WITH_TERMINAL_ERROR"])
def test_a_task_that_is_over_ignores_extensions_and_reports_without_a_word(
    lab: Lab, status: str
) -> None:
    """The reason for R2."""
    attempt = lab.attempt()
    result = {
        "workflowInstanceId": attempt.workflow_instance_id,
        "taskId": attempt.task_id,
        "outputData": {"n": 1},
    }
    lab.truth.update(result | {"status": status})
    lab.truth.extend(attempt, "w")
    lab.truth.update(result | {"status": "COMPLETED", "outputData": {"n": 2}})
    assert lab.status(attempt) == status
    assert lab.task(attempt)["outputData"] == {"n": 1}


def test_the_task_log_takes_lines_as_they_are(lab: Lab) -> None:
    attempt = lab.attempt()
    text = 'línea 1\n"quoted" {"json": 1}\n'
    lab.truth.log(attempt.task_id, text)
    path = f"/tasks/{attempt.task_id}/log"
    logs = eventually(lambda: lab.truth.ask(Ask("look", "GET", path)), "the log")
    assert [line["log"] for line in logs] == [text]


def test_definitions_are_replaced_whole(truth: ConductorClient) -> None:
    name = f"def_{uuid.uuid4().hex[:8]}"
    base = {"name": name, "ownerEmail": OWNER, "retryCount": 1}
    truth.put_taskdefs([base | {"concurrentExecLimit": 3, "description": "old"}])
    truth.put_taskdefs([base])
    found = truth.taskdef(name)
    assert found is not None
    assert "concurrentExecLimit" not in found
    assert "description" not in found


def test_what_is_wrong_with_a_definition_is_in_the_error(truth: ConductorClient) -> None:
    wrong = {"name": "x", "ownerEmail": OWNER, "timeoutSeconds": 5, "responseTimeoutSeconds": 50}
    with pytest.raises(BrokerError, match="responseTimeoutSeconds"):
        truth.put_taskdefs([wrong])


# Measured: over 3 MiB the server keeps an output outside of the task, over 10 MiB it fails the
# task for good; PERAGO_OUTPUT_MAX_SIZE (1 MB) stays below both.
@pytest.mark.parametrize(
    ("size", "status", "inside"),
    [
        (1_000_000, "COMPLETED", True),
        (3_000_000, "COMPLETED", True),
        (3_200_000, "COMPLETED", False),
        (10_500_000, "FAILED_WITH_TERMINAL_ERROR", False),
    ],
)
def test_how_large_an_output_may_be(lab: Lab, size: int, status: str, inside: bool) -> None:
    attempt = lab.attempt()
    output = {"result": "x" * size}
    lab.truth.update(
        {
            "workflowInstanceId": attempt.workflow_instance_id,
            "taskId": attempt.task_id,
            "status": "COMPLETED",
            "outputData": output,
        }
    )
    task = lab.task(attempt)
    assert task["status"] == status
    assert (json.dumps(task["outputData"]) == json.dumps(output)) is inside


def test_f1_a_rerun_hands_out_the_same_task_again_and_its_start_tells(lab: Lab) -> None:
    """Task id and retry count stay the same; extending the lease does not move the start."""
    attempt = lab.attempt()
    lab.truth.extend(attempt, "someone")
    assert_current_attempt_snapshot(attempt, snapshot_of(attempt, lab.task(attempt)))
    lab.truth.terminate(attempt.workflow_instance_id, "stop")
    assert lab.status(attempt) == "CANCELED"
    body = {"reRunFromTaskId": attempt.task_id}
    lab.act("POST", f"/workflow/{attempt.workflow_instance_id}/rerun", body)
    again = attempt_of(lab.poll())
    assert again == replace(attempt, started_at=again.started_at)
    with pytest.raises(StaleAttemptError, match="started_at"):
        assert_current_attempt_snapshot(attempt, snapshot_of(attempt, lab.task(attempt)))
