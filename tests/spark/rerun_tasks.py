"""Tasks that write tables in many ways, to be run twice (X13)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from perago import WorkspaceSpec, task
from perago.spark import SparkSpec, SparkWorkspace
from perago.spark.direct import MAGIC, NAME
from tests.spark.direct_tasks import DIRECT
from tests.spark.tasks import OWNER, SMALL

ODD = "odd/ü & 100% 'x' #1 ="
LIKE = "mine/part-00007-01234567-89ab-4cde-8f01-23456789abcd-c000.csv"


class Step(BaseModel):
    what: str
    rows: int = 12


class Done(BaseModel):
    rows: int = 0


def tables(spark: SparkSession, workspace: SparkWorkspace, step: Step) -> None:
    """Two tables in one body, one of them partitioned, one with several files for each task."""
    df = spark.range(step.rows).withColumn("k", F.col("id") % 3)
    workspace.write(df, "one", mode="overwrite", partition_by="k")
    workspace.write(df, ODD, mode="overwrite", options={"maxRecordsPerFile": 2})


def append(spark: SparkSession, workspace: SparkWorkspace, step: Step) -> None:
    """Equal rows, twice."""
    for _ in range(2):
        workspace.write(spark.range(step.rows).coalesce(1), "log", mode="append")


def partition(spark: SparkSession, workspace: SparkWorkspace, step: Step) -> None:
    """One partition of several."""
    df = spark.range(step.rows).withColumn("k", F.col("id") % 3).where("k = 1")
    options = {"partitionOverwriteMode": "dynamic"}
    workspace.write(df, "one", mode="overwrite", partition_by="k", options=options)


def formats(spark: SparkSession, workspace: SparkWorkspace, step: Step) -> None:
    """Every format."""
    for name in ("csv", "json", "orc"):
        workspace.write(spark.range(step.rows), name, mode="overwrite", format=name)
    gzip = {"compression": "gzip"}
    workspace.write(spark.range(step.rows), "gz", mode="overwrite", format="csv", options=gzip)


def own_writer(spark: SparkSession, workspace: SparkWorkspace, step: Step) -> None:
    """Spark's own writer: the names are Spark's."""
    spark.range(step.rows).write.mode("overwrite").parquet(workspace.path("own"))


def own_writer_and_list(spark: SparkSession, workspace: SparkWorkspace, step: Step) -> None:
    """The same with a file that mentions the names."""
    own_writer(spark, workspace, step)
    root = Path(workspace.path().removeprefix("file://"))
    names = sorted(file.name for file in (root / "own").iterdir())
    (root / "names.txt").write_text("\n".join(names))


def like(spark: SparkSession, workspace: SparkWorkspace, step: Step) -> None:
    """A file of the author's own that is named as Spark names files, beside a table."""
    file = Path(workspace.path(LIKE).removeprefix("file://"))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("id\n1\n")
    workspace.write(spark.range(step.rows), "mine", mode="append", format="csv")


def cached(spark: SparkSession, workspace: SparkWorkspace, step: Step) -> None:
    """A table that is cached while rows are appended to it."""
    workspace.write(spark.range(step.rows), "cached", mode="overwrite")
    kept = workspace.read.parquet("cached").cache()
    assert kept.count() == step.rows
    workspace.write(spark.range(step.rows), "cached", mode="append")
    assert kept.count() == 2 * step.rows
    kept.unpersist()


DEEDS: dict[str, Callable[[SparkSession, SparkWorkspace, Step], None]] = {
    deed.__name__: deed
    for deed in (
        *(tables, append, partition, formats),
        *(own_writer, own_writer_and_list, like, cached),
    )
}


def _do(spark: SparkSession, workspace: SparkWorkspace, params: Step) -> Done:
    DEEDS[params.what](spark, workspace, params)
    return Done()


@task(name="rerun_local", owner_email=OWNER, workspace=WorkspaceSpec(prefix="lake"), spark=SMALL)
def local(spark: SparkSession, workspace: SparkWorkspace, params: Step) -> Done:
    """Work in the attempt directory."""
    return _do(spark, workspace, params)


@task(name="rerun_direct", owner_email=OWNER, workspace=WorkspaceSpec(prefix="lake"), spark=DIRECT)
def direct(spark: SparkSession, workspace: SparkWorkspace, params: Step) -> Done:
    """Work on the branch; this machine sends the files."""
    return _do(spark, workspace, params)


@task(
    name="rerun_magic",
    owner_email=OWNER,
    workspace=WorkspaceSpec(prefix="lake"),
    spark=SparkSpec(conf={**DIRECT.conf, NAME: MAGIC}, workspace="direct"),
)
def magic(spark: SparkSession, workspace: SparkWorkspace, params: Step) -> Done:
    """Work on the branch; the executors send the files, as on a cluster."""
    return _do(spark, workspace, params)
