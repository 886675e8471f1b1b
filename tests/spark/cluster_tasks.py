"""One task for every kind of master: Python functions, a join, a partitioned table, guards."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pydantic import BaseModel
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import StringType

from perago import WorkspaceSpec, task
from perago.data import (
    expect,
    max_drift,
    require_foreign_key,
    require_not_null,
    require_rows,
    require_schema,
    require_unique,
    require_values,
)
from perago.spark import SparkSpec, SparkWorkspace
from tests.spark.cluster_words import charged, tidy
from tests.spark.tasks import OWNER, SMALL, Rows

TRIPS = "trip,zone,km\n1, Harbour ,3.5\n2,OLD  town,12\n3,harbour,20\n4,,1\n"
ZONES = "zone,name\nharbour,H\nold town,O\nunknown,U\n"
FILES = {"taxi/bronze/trips.csv": TRIPS, "taxi/bronze/zones.csv": ZONES}


class Params(BaseModel):
    pass


class Fares(BaseModel):
    fares: list[tuple[int, str, float]]
    zone: str


# Declared when the module is imported, before anybody knows where it will run.
tidied = F.udf(tidy, StringType(), useArrow=False)


@task(
    name="spark_fares",
    owner_email=OWNER,
    workspace=WorkspaceSpec(
        prefix="/taxi",
        post=[
            require_schema(
                "gold/fares",
                {"trip": "bigint", "fare": "double", "name": "string", "zone": "string"},
            ),
            require_rows("gold/fares", min=4, max=4),
            require_not_null("gold/fares", "trip", "fare"),
            require_unique("gold/fares", "trip"),
            require_values("gold/fares", "fare", min=0, max=100),
            require_foreign_key("gold/fares", "zone", "bronze/zones.csv"),
            max_drift("gold/fares", rows=0.5),
            expect("gold/fares", "fare >= 1"),
        ],
    ),
    spark=SMALL,
)
def fares(spark: SparkSession, workspace: SparkWorkspace, params: Params) -> Fares:
    trips = workspace.read.csv("bronze/trips.csv", header=True)
    trips = trips.select(
        F.col("trip").cast("long").alias("trip"),
        tidied("zone").alias("zone"),
        F.col("km").cast("double").alias("km"),
    )
    priced = trips.mapInArrow(charged, "trip long, zone string, km double, extra double")
    zones = workspace.table("bronze/zones.csv")
    known = priced.join(zones, "zone").select(
        "trip", (F.col("km") + F.col("extra")).alias("fare"), "name", "zone"
    )
    workspace.write(known, "gold/fares", mode="overwrite", partition_by="zone")
    workspace.table("gold/fares")
    rows = spark.sql("SELECT * FROM fares ORDER BY trip")
    return Fares(
        fares=[(row["trip"], row["name"], row["fare"]) for row in rows.collect()],
        zone=spark.conf.get("spark.sql.session.timeZone") or "",
    )


@task(
    name="spark_bad_fares",
    owner_email=OWNER,
    spark=SMALL,
    workspace=WorkspaceSpec(prefix="/taxi", post=[expect("gold/bad", "fare > 2")]),
)
def bad_fares(spark: SparkSession, workspace: SparkWorkspace, params: Params) -> Rows:
    workspace.write(spark.range(4).selectExpr("id AS trip", "double(id) AS fare"), "gold/bad")
    return Rows(rows=4)


class Busy(BaseModel):
    marker: Path


@task(name="spark_busy", owner_email=OWNER, spark=SparkSpec(conf=SMALL.conf))
def busy(spark: SparkSession, params: Busy) -> Rows:
    """Work for long, unless it is cancelled; say when the work has begun, and when it ended."""
    marker = str(params.marker)

    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        Path(marker).write_text("begun")
        time.sleep(600)  # unless it is cancelled
        Path(marker).write_text("ended")
        yield from batches

    return Rows(rows=spark.range(0, 1, 1, 1).mapInArrow(wait, "id long").count())


@task(name="spark_context", owner_email=OWNER, spark=SMALL)
def context(spark: SparkSession, params: Params) -> Rows:
    return Rows(rows=spark.sparkContext.parallelize([1]).count())
