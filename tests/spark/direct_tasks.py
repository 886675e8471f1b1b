"""Tasks on direct workspaces: nothing is downloaded, Spark works on lakeFS itself (X2)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from pydantic import BaseModel
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from perago import WorkspaceSpec, require_glob, task
from perago.data import max_drift, require_not_null, require_rows, require_unique
from perago.spark import SparkSpec, SparkWorkspace
from tests.patience import scaled
from tests.spark.tasks import OWNER, SMALL, Params, Rows

DIRECT = SparkSpec(conf=dict(SMALL.conf), workspace="direct")
TABLE = "bronze/numbers"


class Step(BaseModel):
    rows: int = 10
    mode: str = "overwrite"
    dynamic: bool = False
    where: str = "true"
    path: str = TABLE
    format: str = "parquet"


class Counts(BaseModel):
    before: int
    after: int
    added: int = 0
    removed: int = 0
    source: str = ""


@task(name="direct_write", owner_email=OWNER, workspace=WorkspaceSpec(prefix="lake"), spark=DIRECT)
def write(spark: SparkSession, workspace: SparkWorkspace, params: Step) -> Counts:
    """Write a table in the way the parameters say; count before and after."""
    before = workspace.table(params.path).count() if workspace.exists(params.path) else 0
    df = spark.range(params.rows).withColumn("k", F.col("id") % 3).where(params.where)
    workspace.write(
        df,
        params.path,
        mode=params.mode,  # type: ignore[arg-type]
        format=params.format,
        partition_by="k",
        options={"partitionOverwriteMode": "dynamic"} if params.dynamic else None,
    )
    found = workspace.table(params.path)
    diff = workspace.diff()
    return Counts(
        before=before,
        after=found.count(),
        added=len(diff.added),
        removed=len(diff.removed),
        source=workspace.path(params.path),
    )


UNSTEADY_PARTS, UNSTEADY_EACH = 4, 10
STRAGGLING_SECONDS = scaled(60)
UNSTEADY_ROWS = UNSTEADY_PARTS * UNSTEADY_EACH


@task(
    name="direct_unsteady", owner_email=OWNER, workspace=WorkspaceSpec(prefix="lake"), spark=DIRECT
)
def unsteady(spark: SparkSession, workspace: SparkWorkspace, params: Step) -> Counts:
    """Write a table, one of whose Spark tasks fails in the middle or hardly moves, at first."""
    fails, each = params.where == "fails", UNSTEADY_EACH

    def numbers(part: int, _: Iterable[int]) -> Iterator[tuple[int, int]]:
        turn = TaskContext.get().attemptNumber()  # type: ignore[union-attr]
        for number in range(each):
            yield part * each + number, turn
            if (part, turn, number) == (1, 0, 0):
                if fails:
                    raise RuntimeError("not this time")
                time.sleep(STRAGGLING_SECONDS)  # until its twin was quicker

    parts = spark.sparkContext.parallelize(range(UNSTEADY_PARTS), UNSTEADY_PARTS)
    made = parts.mapPartitionsWithIndex(numbers).toDF("id long, turn long")
    workspace.write(made, TABLE)
    found = [(row.id, row.turn) for row in workspace.table(TABLE).collect()]
    turns = max(turn for number, turn in found if number // each == 1)
    return Counts(before=turns, after=len(found), added=len({number for number, _ in found}))


@task(
    name="direct_rewrite", owner_email=OWNER, workspace=WorkspaceSpec(prefix="lake"), spark=DIRECT
)
def rewrite(spark: SparkSession, workspace: SparkWorkspace, params: Step) -> Counts:
    """Replace a table by what is made of it; the second time it is this attempt's own."""
    given = workspace.read.parquet(TABLE)
    before = given.count()
    workspace.write(given.where("id >= 5"), TABLE, mode="overwrite", partition_by="k")
    again = workspace.read.parquet(TABLE)
    after = again.count()
    if params.where == "twice":
        workspace.write(again, TABLE, mode="overwrite", partition_by="k")
    return Counts(before=before, after=after)


@task(
    name="direct_look",
    owner_email=OWNER,
    workspace=WorkspaceSpec(prefix="lake", read_only=True),
    spark=DIRECT,
)
def look(workspace: SparkWorkspace, params: Step) -> Rows:
    """Read only; write when asked to, which is refused."""
    rows = workspace.read.parquet(params.path).count()
    if params.mode == "append":
        workspace.write(workspace.spark.range(1), "x")
    return Rows(rows=rows)


@task(name="direct_litter", owner_email=OWNER, workspace=WorkspaceSpec(prefix="lake"), spark=DIRECT)
def litter(spark: SparkSession, workspace: SparkWorkspace, params: Params) -> Rows:
    """Leave behind what Spark leaves behind, with or without data."""
    if params.rows:
        workspace.write(spark.range(params.rows).coalesce(1), "t", mode="overwrite")
    jvm, hadoop = spark._jvm, spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 - Hadoop's own way to make them
    for name in (
        "t/_SUCCESS",
        "t/_temporary/0/part-0",
        "t/.spark-staging-1/k=1/part-0",
        "t/__magic_job-1/tasks/part-0.pending",
    ):
        path = jvm.org.apache.hadoop.fs.Path(workspace.path(name))  # type: ignore[union-attr]
        files = path.getFileSystem(hadoop)
        files.create(path).close()
    path = jvm.org.apache.hadoop.fs.Path(workspace.path("empty/directory"))  # type: ignore[union-attr]
    path.getFileSystem(hadoop).mkdirs(path)
    return Rows(rows=len(workspace.diff().added))


@task(name="direct_idle", owner_email=OWNER, workspace=WorkspaceSpec(prefix="lake"), spark=DIRECT)
def idle(workspace: SparkWorkspace, params: Params) -> Rows:
    """Change nothing."""
    return Rows(rows=workspace.read.parquet(TABLE).count())


@task(
    name="direct_guarded",
    owner_email=OWNER,
    workspace=WorkspaceSpec(
        prefix="lake",
        pre=[require_glob("bronze/**/*.parquet")],
        post=[
            require_glob("silver/t/**/*.parquet"),
            require_not_null("silver/t", "id"),
            require_unique("silver/t", "id"),
            require_rows("silver/t", min=10),
            max_drift(TABLE, rows=0.5),
        ],
    ),
    spark=DIRECT,
)
def guarded(spark: SparkSession, workspace: SparkWorkspace, params: Params) -> Rows:
    """Write what is guarded."""
    df = spark.range(params.rows).selectExpr(
        "if(id = 7 AND '" + params.mode + "' = 'bad', NULL, id) AS id"
    )
    workspace.write(df, "silver/t")
    return Rows(rows=params.rows)


@task(name="direct_beside", owner_email=OWNER, workspace=WorkspaceSpec(prefix="lake"), spark=DIRECT)
def beside(spark: SparkSession, workspace: SparkWorkspace, params: Step) -> Rows:
    """Write a table whose name may not go with one that was not looked at."""
    workspace.write(spark.range(1), params.path)
    return Rows(rows=1)


@task(name="direct_actions", owner_email=OWNER, workspace=WorkspaceSpec(), spark=DIRECT)
def actions(spark: SparkSession, workspace: SparkWorkspace, params: Params) -> Rows:
    """Write where no task may."""
    workspace.write(spark.range(1), "_lakefs_actions/t")
    return Rows(rows=1)


@task(
    name="direct_outside", owner_email=OWNER, workspace=WorkspaceSpec(prefix="lake"), spark=DIRECT
)
def outside(spark: SparkSession, workspace: SparkWorkspace, params: Params) -> Rows:
    """Write beside the workspace."""
    spark.range(1).write.parquet(workspace.path() + "/../other/t")
    return Rows(rows=1)
