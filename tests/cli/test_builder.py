"""A workflow built with the Conductor SDK's own builder runs here."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Perago

FLOW = """
from conductor.client.workflow.conductor_workflow import ConductorWorkflow
from conductor.client.workflow.task.simple_task import SimpleTask

count = SimpleTask("count_words", "count")
count.input_parameters.update(
    {"workspace": "${workflow.input.workspace}", "params": {"min_length": 4}}
)
top = SimpleTask("top_words", "top")
top.input_parameters.update({"workspace": "${count.output.workspace}", "params": {"top": 2}})
flow = ConductorWorkflow(executor=None, name="built", version=1)
flow >> count >> top
flow.output_parameters({"words": "${top.output.result.words}"})
"""


def test_module_and_attribute_name_a_built_workflow(project: Path, perago: Perago) -> None:
    assert perago("init", ".").code == 0
    (project / "flow.py").write_text(FLOW)
    answer = perago("run", "flow:flow", "tasks", "--from", "data", "--json")
    assert answer.code == 0, answer
    assert answer.json["output"] == {"words": ["boats", "follows"]}
