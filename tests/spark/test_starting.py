"""The start of a JVM is told apart from what the attempt does with it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import LIMIT

pytestmark = pytest.mark.usefixtures("jvm")

TASKS = """
from pydantic import BaseModel
from pyspark.sql import SparkSession

from perago import task


class Count(BaseModel):
    rows: int = 3


@task(name="count", owner_email="a@example.com")
def count(spark: SparkSession, params: Count) -> Count:
    return Count(rows=spark.range(params.rows).count())
"""
STEP = {"name": "count", "inputParameters": {"params": {}}}
TWICE = {"name": "twice", "tasks": [{**STEP, "taskReferenceName": name} for name in ("a", "b")]}


def perago(project: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "perago", *arguments],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_first_step_shows_how_long_spark_took_to_start(tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text(TASKS)
    (tmp_path / "twice.json").write_text(json.dumps(TWICE))
    said = perago(tmp_path, "run", "twice.json", "tasks", "-j", "1").splitlines()
    first, second = (next(line for line in said if f"✓ {name} " in line) for name in "ab")
    assert "(starting Spark: " in first
    assert "starting Spark" not in second
    run = next(line for line in said if line.startswith("COMPLETED")).split()[-1]
    told = json.loads(perago(tmp_path, "inspect", run, "--json"))
    phases = [
        [phase["name"] for phase in each["phases"]]
        for each in sorted(told["executions"], key=lambda each: each["step"])
    ]
    assert phases[0] == ["input", "starting Spark", "body", "result model", "report"]
    assert phases[1] == ["input", "body", "result model", "report"]
