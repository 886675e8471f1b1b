"""``perago register`` and ``extract`` against the real server (W1, W9)."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from perago.brokers.conductor.client import ConductorClient
from perago.dev import ConductorEndpoint
from tests.conductor.commands import Shell, shell

TASKS = """
from pathlib import Path
from pydantic import BaseModel
from perago import (
    ExecutionLimits, PublishBudget, TaskControls, TimeoutPolicy, WorkspaceSpec, task,
)

class Params(BaseModel):
    top: int = 5

class Found(BaseModel):
    words: list[str] = []

@task(name="{name}_write", owner_email="data@example.com", workspace=WorkspaceSpec(),
      controls=TaskControls({controls}))
def write(workspace: Path, params: Params) -> Found:
    return Found()

@task(name="{name}_read", owner_email="data@example.com", workspace=WorkspaceSpec(read_only=True),
      controls=TaskControls(timeout=TimeoutPolicy(seconds=900)))
def read(workspace: Path, params: Params) -> Found:
    return Found()
"""
QUIET = "timeout=TimeoutPolicy(seconds=900)"
GIVEN = "${workflow.input.workspace}"


@pytest.fixture
def name() -> str:
    return f"reg_{uuid.uuid4().hex[:10]}"


@pytest.fixture
def place(tmp_path: Path, conductor_server: ConductorEndpoint, name: str) -> Shell:
    found = shell(tmp_path, conductor_server)
    found.write("steps.py", TASKS.format(name=name, controls=QUIET))
    found.write("flow.json", json.dumps(flow(name)))
    return found


def step(task: str, reference: str) -> dict[str, Any]:
    return {
        "name": task,
        "taskReferenceName": reference,
        "type": "SIMPLE",
        "inputParameters": {"workspace": GIVEN, "params": {"top": 3}},
    }


def flow(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "version": 1,
        "schemaVersion": 2,
        "ownerEmail": "data@example.com",
        "tasks": [step(f"{name}_write", "one"), step(f"{name}_read", "two")],
        "outputParameters": {"words": "${two.output.result.words}"},
        **changes,
    }


def states(answer: Any) -> list[str]:
    return [each["state"] for each in answer["definitions"]]


def test_w1_the_first_time_all_is_new_and_the_second_time_there_is_nothing_to_do(
    place: Shell, truth: ConductorClient, name: str
) -> None:
    looked = place.perago("register", "steps", "flow.json", "--dry-run", "--json")
    assert (looked.code, states(looked.json)) == (0, ["new", "new", "new"])
    assert not looked.json["registered"]
    assert truth.taskdef(f"{name}_write") is None
    assert truth.workflow(name, 1) is None

    first = place.perago("register", "steps", "flow.json")
    assert first.code == 0, first.err
    assert first.err == ""
    assert "registered 3 of 3" in first.out
    found = truth.taskdef(f"{name}_write")
    assert found is not None
    assert found["inputSchema"]["data"]["properties"]["params"]["properties"]["top"]["default"] == 5
    assert truth.workflow(name, 1) is not None

    again = place.perago("register", "steps", "flow.json", "--json")
    assert states(again.json) == ["same", "same", "same"]
    assert again.json["warnings"] == []
    assert "nothing to do" in place.perago("register", "steps.py", "flow.json").out


def test_w1_what_changes_is_shown_by_its_path(
    place: Shell, truth: ConductorClient, name: str
) -> None:
    place.perago("register", "steps", "flow.json")
    limits = f"{QUIET}, limits=ExecutionLimits(concurrent_exec_limit=2)"
    place.write("steps.py", TASKS.format(name=name, controls=limits).replace("= 5", "= 6"))
    place.write("flow.json", json.dumps(flow(name, description="counts")))
    shown = place.perago("register", "steps", "flow.json", "--dry-run")
    assert "concurrentExecLimit: nothing -> 2" in shown.out
    assert "inputSchema.data.properties.params.properties.top.default: 5 -> 6" in shown.out
    assert 'description: nothing -> "counts"' in shown.out
    assert "nothing was sent" in shown.out
    place.perago("register", "steps", "flow.json")
    found = truth.taskdef(f"{name}_write")
    assert found is not None
    assert found["concurrentExecLimit"] == 2

    # Taken out again, it goes from the server too.
    place.write("steps.py", TASKS.format(name=name, controls=QUIET))
    place.write("flow.json", json.dumps(flow(name)))
    shown = place.perago("register", "steps", "flow.json")
    assert "concurrentExecLimit: 2 -> nothing" in shown.out
    assert 'description: "counts" -> nothing' in shown.out
    found = truth.taskdef(f"{name}_write")
    assert found is not None
    assert "concurrentExecLimit" not in found
    assert states(place.perago("register", "steps", "flow.json", "--json").json) == ["same"] * 3


BUDGET = (
    "timeout=TimeoutPolicy(response_seconds=60), publish_budget=PublishBudget("
    "observed_merge_p99_seconds=1, safety_margin_seconds=1, lakefs_merge_timeout_seconds=30,"
    "conductor_completion_timeout_seconds=30, worker_shutdown_grace_seconds=30,"
    "heartbeat_interval_seconds=10)"
)


@pytest.mark.parametrize("command", ["register", "extract"])
def test_t5_warnings_of_the_publish_budget_and_of_no_time_limit(
    place: Shell, name: str, command: str
) -> None:
    place.write("steps.py", TASKS.format(name=name, controls=BUDGET))
    ran = place.perago(command, "steps")
    assert ran.code == 0
    assert "the publish budget needs 100" in ran.err
    assert "a body that hangs is never ended" in ran.err
    assert f"{name}_read" not in ran.err


def test_extract_takes_several_modules(place: Shell, name: str) -> None:
    place.write("more.py", TASKS.format(name=f"{name}_b", controls=QUIET))
    found = place.perago("extract", "steps", "more").json
    assert [each["name"] for each in found] == [
        *(f"{name}_write", f"{name}_read", f"{name}_b_write", f"{name}_b_read")
    ]


def test_w9_parallel_writers_are_refused_before_anything_is_sent(
    place: Shell, truth: ConductorClient, name: str
) -> None:
    fork = {
        "name": "fork",
        "taskReferenceName": "fork",
        "type": "FORK_JOIN",
        "forkTasks": [[step(f"{name}_write", "a")], [step(f"{name}_write", "b")]],
    }
    join = {"name": "j", "taskReferenceName": "j", "type": "JOIN", "joinOn": ["a", "b"]}
    place.write("flow.json", json.dumps(flow(name, tasks=[fork, join], outputParameters={})))
    ran = place.perago("register", "steps", "flow.json")
    assert ran.code == 2
    assert "tasks 'a' and 'b' may run at the same time" in ran.err
    assert truth.taskdef(f"{name}_write") is None


def test_a_workflow_with_kinds_that_only_a_server_runs_is_registered(
    place: Shell, truth: ConductorClient, name: str
) -> None:
    wait = {
        "name": "wait",
        "taskReferenceName": "wait",
        "type": "WAIT",
        "inputParameters": {},
    }
    stranger = step("somebody_elses_task", "three")
    tasks = [*flow(name)["tasks"], wait, stranger]
    place.write("flow.json", json.dumps(flow(name, tasks=tasks)))
    ran = place.perago("register", "steps", "flow.json", "--json")
    assert ran.code == 0, ran.err
    assert truth.workflow(name, 1) is not None
    warnings = " ".join(ran.json["warnings"])
    assert "must have duration or until" in warnings
    assert "'somebody_elses_task' is not registered" in warnings
    assert states(place.perago("register", "steps", "flow.json", "--json").json) == ["same"] * 3


MISTAKES: dict[str, tuple[str, str, int]] = {
    "no JSON": ("{", "line 1", 2),
    "a list": ("[]", "not a workflow", 2),
    "no name": ('{"tasks": []}', "name is missing", 2),
    "no tasks": ('{"name": "x"}', "tasks is missing", 2),
    "a bad version": ('{"name": "x", "version": "1", "tasks": [{}]}', "version", 2),
    "no reference": ('{"name": "x", "tasks": [{"name": "y"}]}', "taskReferenceName", 2),
    "twins": (json.dumps({"name": "x", "tasks": [step("y", "a")] * 2}), "twice", 2),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_every_mistake_in_a_workflow_is_one_sentence(place: Shell, mistake: str) -> None:
    text, expected, code = MISTAKES[mistake]
    place.write("flow.json", text)
    ran = place.perago("register", "steps", "flow.json")
    assert ran.code == code
    assert expected in ran.err
    assert "Traceback" not in ran.err
    assert ran.out == ""


def test_what_the_server_refuses_is_one_sentence_with_its_reason(place: Shell, name: str) -> None:
    controls = "timeout=TimeoutPolicy(seconds=10, response_seconds=60)"
    place.write("steps.py", TASKS.format(name=name, controls=controls))
    ran = place.perago("register", "steps", "--json")
    assert ran.code == 4
    assert "responseTimeoutSeconds" in json.loads(ran.err)["message"]
    assert "Conductor refuses timeout.response_seconds" in place.perago("extract", "steps").err


@pytest.mark.parametrize(
    ("url", "code", "expected"),
    [
        ("", 3, "CONDUCTOR_SERVER_URL"),
        ("nonsense", 3, "http://host:8080/api"),
        ("http://127.0.0.1:9", 4, "no answer"),
    ],
)
def test_a_server_that_is_not_there_is_one_sentence(
    place: Shell, url: str, code: int, expected: str
) -> None:
    place.environment["CONDUCTOR_SERVER_URL"] = url
    ran = place.perago("register", "steps", "flow.json")
    assert (ran.code, ran.out) == (code, "")
    assert expected in ran.err
    assert "Traceback" not in ran.err


def test_a_workflow_alone_is_not_enough(place: Shell) -> None:
    ran = place.perago("register", "flow.json")
    assert ran.code == 2
    assert "perago register MODULE WORKFLOW.json" in ran.err


def test_doctor_says_whether_tasks_are_registered_as_declared(place: Shell, name: str) -> None:
    def tasks() -> dict[str, str]:
        found = place.perago("doctor", "steps", "--json").json["findings"]
        assert "3." in next(each["detail"] for each in found if each["what"] == "Conductor")
        assert any("of Conductor" in each["detail"] for each in found if each["what"] == "clock")
        return {each["what"]: each["health"] for each in found if each["what"].startswith("task")}

    assert set(tasks().values()) == {"bad"}
    place.perago("register", "steps")
    assert set(tasks().values()) == {"good"}
    place.write("steps.py", TASKS.format(name=name, controls=f"{QUIET}, limits=ExecutionLimits("
                                         "concurrent_exec_limit=9)"))  # fmt: skip
    assert tasks() == {f"task {name}_write": "doubtful", f"task {name}_read": "good"}


def test_doctor_says_what_is_wrong_with_the_address(place: Shell) -> None:
    for url, words in (("nonsense", "http://host:8080/api"), ("http://127.0.0.1:9", "check")):
        place.environment["CONDUCTOR_SERVER_URL"] = url
        ran = place.perago("doctor", "--json")
        assert ran.code == 1
        (found,) = [each for each in ran.json["findings"] if each["what"] == "Conductor"]
        assert found["health"] == "bad"
        assert words in found["remedy"]
