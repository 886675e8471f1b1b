"""A bug in a task: retried as often as declared, without long waits, and named with its line."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.cli.conftest import Perago

TASKS = """
from pydantic import BaseModel
from perago import RetryPolicy, TaskControls, task
import shapes

class Params(BaseModel):
    kind: str = "own"

@task(name="area", owner_email="a@example.com", controls=TaskControls(retry=RetryPolicy({retry})))
def area(params: Params) -> Params:
    if params.kind == "library":
        import json
        json.loads("{{")
    if params.kind == "beside":
        shapes.area()
    if params.kind == "own":
        1 / 0
    return params
"""
BESIDE = "def area() -> None:\n    raise LookupError('no such shape')\n"


def written(project: Path, retry: str) -> None:
    (project / "tasks.py").write_text(TASKS.format(retry=retry))
    (project / "shapes.py").write_text(BESIDE)


def test_retries_are_as_many_as_declared_and_soon(perago: Perago, project: Path) -> None:
    """With the declared hour between them this test would not end."""
    written(project, "count=2, delay_seconds=3600")
    answer = perago("run", "tasks")
    assert answer.code == 1
    assert re.findall(r"✗ area(?: retry (\d))?", answer.out) == ["", "1", "2"]
    assert answer.out.count("ZeroDivisionError: division by zero (tasks.py line 17)") == 4


def test_real_delays_are_waited_for_and_shown_in_a_pipe(perago: Perago, project: Path) -> None:
    written(project, "count=1, delay_seconds=2")
    assert "• area retry 1  starts in 2 s\n" in perago("run", "tasks", "--real-delays").out
    assert "starts in" not in perago("run", "tasks").out


def test_the_line_is_the_authors(perago: Perago, project: Path) -> None:
    written(project, "count=0")
    for kind, line in (("library", "tasks.py line 13"), ("beside", "shapes.py line 2")):
        answer = perago("run", "tasks", "--params", json.dumps({"kind": kind}), "--json")
        assert answer.json["reason"].endswith(f"({line})")


def test_one_round_of_a_loop_can_be_killed(perago: Perago, project: Path) -> None:
    written(project, "count=1, delay_seconds=0")
    step = {"name": "area", "taskReferenceName": "area", "type": "SIMPLE"}
    loop = {"name": "rounds", "taskReferenceName": "rounds", "type": "DO_WHILE"}
    loop |= {"loopCondition": "$.rounds.iteration < 2"}
    again = [step | {"inputParameters": {"params": {"kind": "none"}}}]
    flow = {"name": "flow", "version": 1, "schemaVersion": 2, "tasks": [loop | {"loopOver": again}]}
    (project / "flow.json").write_text(json.dumps(flow))
    killed = {"PERAGO_KILL_AT": "area__2:0:after body"}
    answer = perago("run", "flow.json", "tasks", env=killed)
    assert answer.code == 0, answer
    steps = re.findall(r"^(.) (area__\d(?: retry \d)?) ", answer.out, re.MULTILINE)
    assert steps == [("✓", "area__1"), ("✗", "area__2"), ("✓", "area__2 retry 1")]
