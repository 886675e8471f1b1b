"""A definition built with the Conductor SDK's workflow builder runs as it comes."""

from __future__ import annotations

import json
from typing import Any

from conductor.client.configuration.configuration import Configuration
from conductor.client.http.api_client import ApiClient
from conductor.client.workflow.conductor_workflow import ConductorWorkflow
from conductor.client.workflow.executor.workflow_executor import WorkflowExecutor
from conductor.client.workflow.task.simple_task import SimpleTask
from conductor.client.workflow.task.switch_task import SwitchTask

from perago.workflow.parsing import parse_workflow
from perago.workflow.records import RunStatus
from perago.workflow.tasks import TaskKind
from tests.broker.definitions import World

SHAPE = [TaskKind.SIMPLE, TaskKind.FORK_JOIN, TaskKind.JOIN, TaskKind.SWITCH, TaskKind.SIMPLE]


def built() -> Any:
    configuration = Configuration()
    client: Any = ApiClient(configuration)
    workflow: Any = ConductorWorkflow(WorkflowExecutor(configuration), name="built", version=2)
    first = SimpleTask("t", "a")
    first.input_parameters = {"params": "${workflow.input.kind}"}
    chosen = SwitchTask("s", "${workflow.input.kind}")
    chosen.switch_case("x", [SimpleTask("t", "d")]).default_case([SimpleTask("t", "e")])
    side_by_side = [SimpleTask("t", "b"), SimpleTask("t", "c")]
    _ = workflow >> first >> side_by_side >> chosen >> SimpleTask("t", "z")
    return client.sanitize_for_serialization(workflow.to_workflow_def())


def test_it_runs() -> None:
    definition = json.loads(json.dumps(built()))
    assert [task["type"] for task in definition["tasks"]] == SHAPE
    world = World(parse_workflow(definition, {"t"}), {"kind": "x"})
    world.settle()
    for name in "abcdz":
        world.finish(name)
    assert world.run.status is RunStatus.COMPLETED
