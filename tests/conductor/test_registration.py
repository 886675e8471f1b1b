"""What counts as a difference between what we send and what a server has."""

from __future__ import annotations

from typing import Any

import pytest

from perago.brokers.conductor.registration import ABSENT, Difference, differences, registration

TASK: dict[str, Any] = {
    "name": "count",
    "ownerEmail": "a@example.com",
    "retryCount": 3,
    "timeoutPolicy": "TIME_OUT_WF",
    "inputKeys": ["params"],
    "inputSchema": {
        "name": "count.input",
        "version": 1,
        "type": "JSON",
        "data": {"type": "object"},
    },
}
# As the real server gives it back, with what it adds.
FOUND: dict[str, Any] = TASK | {
    "createTime": 1,
    "updateTime": 2,
    "createdBy": "",
    "outputKeys": [],
    "rateLimitPerFrequency": 0,
    "rateLimitFrequencyInSeconds": 1,
    "backoffScaleFactor": 1,
    "taskStatusListenerEnabled": True,
    "enforceSchema": False,
    "inputSchema": TASK["inputSchema"] | {"createTime": 0, "updateTime": 0},
}
WORKFLOW: dict[str, Any] = {
    "name": "flow",
    "version": 1,
    "tasks": [{"name": "count", "taskReferenceName": "one", "inputParameters": {"params": {}}}],
}
FOUND_WORKFLOW: dict[str, Any] = WORKFLOW | {
    "schemaVersion": 2,
    "restartable": True,
    "enforceSchema": True,
    "timeoutPolicy": "ALERT_ONLY",
    "variables": {},
    "tasks": [
        WORKFLOW["tasks"][0]
        | {"type": "SIMPLE", "decisionCases": {}, "forkTasks": [], "optional": False, "joinOn": []}
    ],
}


def test_defaults_and_times_of_the_server_are_no_differences() -> None:
    assert registration("task", "count", TASK, FOUND).state == "same"
    assert registration("workflow", "flow", WORKFLOW, FOUND_WORKFLOW).state == "same"


def test_what_the_server_does_not_have_is_new() -> None:
    assert registration("task", "count", TASK, None).state == "new"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"retryCount": 5}, Difference("retryCount", 3, 5)),
        ({"description": "counts"}, Difference("description", ABSENT, "counts")),
        ({"concurrentExecLimit": 2}, Difference("concurrentExecLimit", ABSENT, 2)),
        ({"enforceSchema": True}, Difference("enforceSchema", False, True)),
        ({"retryCount": True}, Difference("retryCount", 3, True)),
        ({"inputKeys": ["workspace", "params"]},
         Difference("inputKeys", ["params"], ["workspace", "params"])),
        ({"inputSchema": TASK["inputSchema"] | {"data": {"type": "object", "title": "T"}}},
         Difference("inputSchema.data.title", ABSENT, "T")),
    ],
)  # fmt: skip
def test_what_we_send_counts(change: dict[str, Any], expected: Difference) -> None:
    assert differences(TASK | change, FOUND) == [expected]


@pytest.mark.parametrize("nothing", [None, "", 0, False, [], {}])
def test_nothing_is_the_same_as_absent(nothing: object) -> None:
    assert differences(TASK | {"somethingNew": nothing}, FOUND) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("concurrentExecLimit", 3),
        ("rateLimitPerFrequency", 5),
        ("rateLimitFrequencyInSeconds", 7),
        ("description", "old"),
        ("inputTemplate", {"a": 1}),
    ],
)
def test_what_was_taken_out_of_a_declaration_counts(key: str, value: object) -> None:
    """Otherwise a limit that the author removed would stay on the server for ever."""
    assert differences(TASK, FOUND | {key: value}) == [Difference(key, value, ABSENT)]


def test_a_default_of_a_newer_server_does_not() -> None:
    assert differences(TASK, FOUND | {"brandNew": {"enabled": True}}) == []


def test_in_free_places_every_key_counts() -> None:
    found = {"inputSchema": {"data": {"properties": {"a": 1, "gone": 0}}}}
    wanted = {"inputSchema": {"data": {"properties": {"a": 1, "createTime": 0}}}}
    assert differences(wanted, found) == [
        Difference("inputSchema.data.properties.createTime", ABSENT, 0),
        Difference("inputSchema.data.properties.gone", 0, ABSENT),
    ]


def test_tasks_of_a_workflow_are_compared_one_by_one() -> None:
    wanted = WORKFLOW | {
        "tasks": [WORKFLOW["tasks"][0] | {"inputParameters": {"params": {"x": 1}}}]
    }
    assert differences(wanted, FOUND_WORKFLOW) == [
        Difference("tasks[0].inputParameters.params.x", ABSENT, 1)
    ]
    more = WORKFLOW | {"tasks": WORKFLOW["tasks"] * 2}
    (found,) = differences(more, FOUND_WORKFLOW)
    assert found.path == "tasks"


def test_optional_taken_out_of_a_task_counts() -> None:
    found = {"tasks": [FOUND_WORKFLOW["tasks"][0] | {"optional": True}]}
    assert differences({"tasks": WORKFLOW["tasks"]}, found) == [
        Difference("tasks[0].optional", True, ABSENT)
    ]


def test_a_difference_as_json_leaves_out_the_side_that_is_not_there() -> None:
    assert Difference("a", ABSENT, 1).as_json() == {"path": "a", "to": 1}
    assert Difference("a", 0, ABSENT).as_json() == {"path": "a", "from": 0}
