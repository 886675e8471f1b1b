"""Declaring a Spark task: by annotation, in any order, without importing PySpark (X1)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from perago import TaskDefinitionError, WorkspaceSpec, data, task
from perago.protocol.spark import SparkNeed
from perago.spark import SparkSpec, SparkWorkspace
from perago.tasks.bodies import FunctionBody, Role
from perago.tasks.declaration import definition_of
from tests.patience import LIMIT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAIL = "data@example.com"


class P(BaseModel):
    pass


def test_x1_roles_are_told_by_annotation_even_one_for_type_checkers_only() -> None:
    @task(name="s", owner_email=MAIL, workspace=WorkspaceSpec())
    def step(params: P, workspace: SparkWorkspace, spark: SparkSession) -> P:
        return params

    found = definition_of(step)
    assert isinstance(found.body, FunctionBody)
    assert found.body.roles == {
        "params": Role.PARAMS,
        "workspace": Role.SPARK_WORKSPACE,
        "spark": Role.SPARK,
    }
    assert found.spark == SparkSpec()


def test_x1_a_task_that_takes_no_spark_has_none() -> None:
    @task(name="s", owner_email=MAIL, workspace=WorkspaceSpec())
    def step(params: P, workspace: Path) -> P:
        return params

    assert definition_of(step).spark is None


def test_x1_the_spec_is_what_the_author_wrote() -> None:
    spec = SparkSpec(
        master="local[2]",
        conf={"spark.ui.enabled": True, "spark.x": 4},
        packages=["org.example:thing:1.0"],
    )
    assert spec.need == SparkNeed(
        "local[2]", {"spark.ui.enabled": "true", "spark.x": "4"}, ("org.example:thing:1.0",)
    )


def test_t1_half_a_declaration_is_refused() -> None:
    with pytest.raises(TaskDefinitionError, match="declares spark but does not take it"):

        @task(name="s", owner_email=MAIL, spark=SparkSpec())
        def unused(params: P) -> P:
            return params

    with pytest.raises(TaskDefinitionError, match="takes the workspace twice"):

        @task(name="s", owner_email=MAIL, workspace=WorkspaceSpec())
        def twice(params: P, a: SparkWorkspace, b: Path) -> P:
            return params

    with pytest.raises(TaskDefinitionError, match="takes a workspace but does not declare it"):

        @task(name="s", owner_email=MAIL)
        def undeclared(params: P, workspace: SparkWorkspace) -> P:
            return params

    spec = WorkspaceSpec(post=[data.expect("t", "a > 0")])
    with pytest.raises(TaskDefinitionError, match="needs Spark"):

        @task(name="s", owner_email=MAIL, workspace=spec)
        def plain(params: P, workspace: Path) -> P:
            return params


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"master": "lokal"}, "the master 'lokal' is not a master Spark knows"),
        ({"conf": {"sql.x": "1"}}, "does not begin with 'spark.'"),
        ({"conf": {"spark.x": None}}, "is of type NoneType"),
        ({"conf": [1]}, "give a dict"),
        ({"packages": "a:b:c"}, "give a list"),
        ({"packages": ["a:b"]}, "group:artifact:version"),
        ({"memory": 1}, "has no argument 'memory'"),
    ],
)
def test_t1_a_wrong_spec_is_refused_where_it_is_written(values: dict[str, Any], told: str) -> None:
    with pytest.raises(TaskDefinitionError, match=told):
        SparkSpec(**values)


def test_x1_declaring_a_spark_task_imports_neither_pyspark_nor_pyarrow() -> None:
    code = (
        "import sys, perago, perago.data, perago.spark, perago.spark.workspace, perago.app.engines;"
        "from perago import task; from perago.spark import SparkSpec, SparkWorkspace;"
        "print(sorted({'pyspark', 'pyarrow', 'py4j'} & {*sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT, check=True
    )
    assert done.stdout.strip() == "[]"
