"""Tasks for the tests: small, each for one behaviour."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from perago import WorkspaceSpec, task
from perago.spark import SparkSpec, SparkWorkspace

OWNER = "data@example.com"
# The same for all of them, so that they share one JVM; it compiles quickly rather than well.
STATIC = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
SMALL = SparkSpec(
    conf={**STATIC, "spark.sql.shuffle.partitions": 2, "spark.sql.codegen.wholeStage": False}
)


class Params(BaseModel):
    rows: int = 10
    mode: str = "error"


class Rows(BaseModel):
    rows: int


class Seen(BaseModel):
    views: list[str]
    partitions: str
    zone: str


@task(name="spark_make", owner_email=OWNER, workspace=WorkspaceSpec(prefix="lake"), spark=SMALL)
def make(params: Params, spark: SparkSession, workspace: SparkWorkspace) -> Rows:
    df = spark.range(params.rows).withColumn("k", F.col("id") % 3)
    workspace.write(df, "bronze/numbers", mode="overwrite", partition_by="k")
    return Rows(rows=workspace.read.parquet("bronze/numbers").count())


@task(name="spark_on_path", owner_email=OWNER, workspace=WorkspaceSpec(), spark=SMALL)
def on_path(spark: SparkSession, workspace: Path, params: Params) -> Rows:
    spark.range(params.rows).write.csv(str(workspace / "out"), header=True)
    return Rows(rows=params.rows)


@task(name="spark_only", owner_email=OWNER, spark=SMALL)
def without_workspace(params: Params, spark: SparkSession) -> Rows:
    return Rows(rows=spark.range(params.rows).count())


@task(
    name="spark_views",
    owner_email=OWNER,
    spark=SparkSpec(conf={**STATIC, "spark.sql.shuffle.partitions": 7}),
)
def views(params: Params, spark: SparkSession) -> Seen:
    found = Seen(
        views=[table.name for table in spark.catalog.listTables()],
        partitions=spark.conf.get("spark.sql.shuffle.partitions") or "",
        zone=spark.conf.get("spark.sql.session.timeZone") or "",
    )
    spark.range(3).createOrReplaceTempView("left_over")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    return found


@task(name="spark_broken", owner_email=OWNER, workspace=WorkspaceSpec(), spark=SMALL)
def broken(spark: SparkSession, workspace: SparkWorkspace, params: Params) -> Rows:
    workspace.write(spark.range(3).selectExpr("assert_true(id < 2, 'too big')"), "out")
    return Rows(rows=0)


@task(name="spark_leftovers", owner_email=OWNER, workspace=WorkspaceSpec(), spark=SMALL)
def leftovers(workspace: SparkWorkspace, params: Params) -> Rows:
    workspace.write(workspace.spark.range(2).coalesce(1), "t")
    root = Path(workspace.path().removeprefix("file://"))
    for name, content in {
        "t/_SUCCESS": b"",
        "t/.part-0.crc": b"crc\0rest",
        "t/_temporary/0/x": b"rest",
        "t/.spark-staging-1/k=1/y": b"rest",
        **({"__magic_numbers.json": b"[7]", "t/.own.crc": b"own"} if params.rows == 1 else {}),
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return Rows(rows=len(workspace.diff().added))
