"""What Spark attempts under fault do: a table, written by Spark to lakeFS itself (X2)."""

from __future__ import annotations

from pyspark.sql import SparkSession

from perago import WorkspaceSpec, task
from perago.spark import SparkSpec, SparkWorkspace
from tests.faults.act_body import begin, die
from tests.faults.acts import CONTROLS, OWNER, TAG, Act, Done

# A JVM that starts quickly: each kill costs one.
DIRECT = SparkSpec(
    conf={
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": 1,
        "spark.sql.codegen.wholeStage": False,
    },
    workspace="direct",
)


@task(
    name=f"spark_{TAG}",
    owner_email=OWNER,
    workspace=WorkspaceSpec(prefix="data", fence="hard"),
    spark=DIRECT,
    controls=CONTROLS,
)
def write(spark: SparkSession, workspace: SparkWorkspace, params: Act) -> Done:
    """Write as many rows as this is a run, in one file."""
    run = begin(params)
    rows = spark.range(run + 1).coalesce(1)
    workspace.write(rows, "table", mode="overwrite")
    if params.die == run:
        die(params)
    return Done(run=run)
