"""Seven steps from a vendor's raw trips to tables people read, and a picture of them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from pydantic import BaseModel, Field
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from examples.trips import data, picture
from perago import (
    MetricRecorder,
    RetryPolicy,
    TaskControls,
    TaskTerminalError,
    WorkspaceSpec,
    forbid_glob,
    require_dir,
    require_file,
    require_glob,
    task,
)
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

OWNER = "data-team@example.com"
QUICK = TaskControls(retry=RetryPolicy(count=2, delay_seconds=1))
# Small data: few partitions, and a JVM that compiles quickly rather than well.
SMALL = SparkSpec(
    conf={
        "spark.sql.shuffle.partitions": 4,
        "spark.sql.codegen.wholeStage": False,
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
)
MANY = 250_000
ONLY_THESE_DAYS = {"partitionOverwriteMode": "dynamic"}
TRIPS, ZONES, REJECTS = "silver/trips", "silver/zones", "silver/rejects"


class Nothing(BaseModel):
    """A step without params."""


class Batch(BaseModel):
    """Which day to load first, how many days, and how many trips there are on them."""

    batch: int = Field(ge=1)
    days: int = Field(default=1, ge=1)
    rows: int = Field(default=30_000, ge=1)
    in_cents: bool = False


class Rows(BaseModel):
    """How many rows came out."""

    written: int
    rejected: int = 0


class Totals(BaseModel):
    """What was driven and earned."""

    days: int
    trips: int
    fares: Decimal


# --- bronze: as it came --------------------------------------------------------------------------


@task(
    name="trips_land",
    owner_email=OWNER,
    workspace=WorkspaceSpec(prefix="bronze", post=[require_glob("trips/day=*/*.csv")]),
    controls=QUICK,
    spark=SMALL,
)
def land(spark: SparkSession, workspace: SparkWorkspace, params: Batch) -> Rows:
    """Land some days of trips, exactly as the vendor sent them, and the zones with the first."""
    if not workspace.exists("zones"):
        workspace.write(data.zones(spark), "zones", format="csv")
    sent = data.trips(spark, params.batch, params.rows, days=params.days, in_cents=params.in_cents)
    workspace.write(
        sent.coalesce(1 + params.rows // MANY),  # small data: one file for each day
        "trips",
        format="csv",
        mode="overwrite",
        partition_by="day",
        options=ONLY_THESE_DAYS,
    )
    return Rows(written=_of_days(workspace.read.csv("trips", header=True), params).count())


def _of_days(trips: DataFrame, params: Batch) -> DataFrame:
    """Keep what was sent on the days of a batch; Spark reads no other files."""
    return trips.where(F.col("day").isin(data.days_of(params.batch, params.days)))


# --- silver: typed, clean, without duplicates ----------------------------------------------------


@task(
    name="trips_clean",
    owner_email=OWNER,
    workspace=WorkspaceSpec(
        pre=[require_glob("bronze/trips/day=*/*.csv"), require_rows("bronze/zones", min=1)],
        post=[
            require_schema(
                TRIPS,
                {
                    "trip_id": "string",
                    "pickup_at": "timestamp",
                    "dropoff_at": "timestamp",
                    "pickup_zone": "int",
                    "dropoff_zone": "int",
                    "distance_km": "double",
                    "fare": "decimal(10,2)",
                    "tip": "decimal(10,2)",
                    "payment": "string",
                    "day": "string",
                },
            ),
            require_not_null(TRIPS, "trip_id", "pickup_at", "pickup_zone", "fare"),
            require_unique(TRIPS, "trip_id"),
            require_values(TRIPS, "distance_km", min=0, max=200),
            require_values(TRIPS, "payment", allowed=set(data.PAYMENTS)),
            require_foreign_key(TRIPS, "pickup_zone", ZONES, "zone_id"),
            expect(TRIPS, "dropoff_at > pickup_at AND fare > 0"),
            max_drift(TRIPS, mean={"fare": 0.25}),
            forbid_glob("**/*.tmp"),
        ],
    ),
    controls=TaskControls(retry=RetryPolicy(count=0)),
    spark=SMALL,
)
def clean(
    spark: SparkSession, workspace: SparkWorkspace, params: Batch, metrics: MetricRecorder
) -> Rows:
    """Keep good rows once, put broken ones aside; late trips go to the day they were made on."""
    if not workspace.exists(ZONES):
        zones = workspace.read.csv("bronze/zones", header=True)
        typed = zones.select(F.col("zone_id").cast("int").alias("zone_id"), "name", "borough")
        workspace.write(typed, ZONES)
    raw = _of_days(workspace.read.csv("bronze/trips", header=True), params)
    good, bad = _parted(_typed(raw), workspace.read.parquet(ZONES))
    good = good.dropDuplicates(["trip_id"])
    if workspace.exists(TRIPS):
        known = workspace.read.parquet(TRIPS).select("trip_id")
        good = good.join(known, "trip_id", "left_anti")
    good = good.withColumn("day", F.to_date("pickup_at").cast("string")).cache()
    workspace.write(good.coalesce(1), TRIPS, mode="append", partition_by="day")
    workspace.write(
        bad.coalesce(1),
        REJECTS,
        format="csv",
        mode="overwrite",
        partition_by="day",
        options=ONLY_THESE_DAYS,
    )
    counted = Rows(written=good.count(), rejected=bad.count())
    metrics.gauge("trips.rejected", counted.rejected)
    return counted


def _typed(raw: DataFrame) -> DataFrame:
    """Read the vendor's text; what cannot be read is NULL."""
    money = "decimal(10,2)"
    return raw.select(
        "trip_id",
        F.expr("try_cast(pickup_at AS timestamp)").alias("pickup_at"),
        F.expr("try_cast(dropoff_at AS timestamp)").alias("dropoff_at"),
        F.expr("try_cast(pickup_zone AS int)").alias("pickup_zone"),
        F.expr("try_cast(dropoff_zone AS int)").alias("dropoff_zone"),
        F.expr("try_cast(distance_km AS double)").alias("distance_km"),
        F.expr(f"try_cast(fare AS {money})").alias("fare"),
        F.expr(f"try_cast(tip AS {money})").alias("tip"),
        "payment",
        "day",
    )


def _parted(typed: DataFrame, zones: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Part what can be used from what cannot."""
    known = F.broadcast(zones.select(F.col("zone_id").alias("pickup_zone"), F.lit(1).alias("ok")))
    usable = "ok = 1 AND fare > 0 AND dropoff_at > pickup_at AND distance_km > 0"
    judged = typed.join(known, "pickup_zone", "left").withColumn(
        "usable",
        F.coalesce(F.expr(usable), F.lit(False)),  # noqa: FBT003 - a literal of SQL
    )
    good = judged.where("usable").select(*typed.columns)
    return good, judged.where("NOT usable").select(*typed.columns)


# --- gold: what people ask for -------------------------------------------------------------------


@task(
    name="trips_daily",
    owner_email=OWNER,
    workspace=WorkspaceSpec(
        pre=[require_dir(TRIPS)],
        post=[
            require_unique("gold/daily", "day", "borough"),
            require_values("gold/daily", "trips", min=1),
        ],
    ),
    controls=QUICK,
    spark=SMALL,
)
def daily(workspace: SparkWorkspace, params: Nothing) -> Totals:
    """Sum trips and fares by day and borough; a late trip counts on the day it was made."""
    workspace.table(TRIPS)
    workspace.table(ZONES)
    table = workspace.spark.sql(
        """
        SELECT cast(day AS date) AS day, borough, count(*) AS trips, sum(fare) AS fares,
               round(avg(distance_km), 3) AS mean_km
        FROM trips JOIN zones ON pickup_zone = zone_id
        GROUP BY day, borough ORDER BY day, borough
        """
    ).coalesce(1)
    workspace.write(table, "gold/daily", mode="overwrite")
    told = workspace.read.parquet("gold/daily").agg(
        F.count_distinct("day"), F.sum("trips"), F.sum("fares")
    )
    days, count, fares = told.collect()[0]
    return Totals(days=days, trips=count, fares=fares)


@task(
    name="trips_hourly",
    owner_email=OWNER,
    workspace=WorkspaceSpec(
        pre=[require_dir(TRIPS)],
        post=[
            require_rows("gold/hourly", min=1, max=7 * 24),
            require_values("gold/hourly", "hour", min=0, max=23),
        ],
    ),
    controls=QUICK,
    spark=SMALL,
)
def hourly(workspace: SparkWorkspace, params: Nothing) -> Rows:
    """Count trips by weekday and hour: when are cabs needed?"""
    trips = workspace.read.parquet(TRIPS)
    table = (
        trips.groupBy(F.weekday("pickup_at").alias("weekday"), F.hour("pickup_at").alias("hour"))
        .agg(F.count(F.lit(1)).alias("trips"), F.round(F.avg("distance_km"), 3).alias("mean_km"))
        .orderBy("weekday", "hour")
        .coalesce(1)
    )
    workspace.write(table, "gold/hourly", mode="overwrite")
    return Rows(written=workspace.read.parquet("gold/hourly").count())


@task(
    name="trips_routes",
    owner_email=OWNER,
    workspace=WorkspaceSpec(
        pre=[require_dir(TRIPS)],
        post=[require_rows("gold/routes", min=1, max=50)],
    ),
    controls=QUICK,
    spark=SMALL,
)
def routes(workspace: SparkWorkspace, params: Nothing) -> Rows:
    """List the fifty busiest routes."""
    workspace.table(TRIPS)
    table = workspace.spark.sql(
        """
        SELECT pickup_zone, dropoff_zone, count(*) AS trips, sum(fare) AS fares
        FROM trips GROUP BY ALL ORDER BY trips DESC, pickup_zone, dropoff_zone LIMIT 50
        """
    ).coalesce(1)
    workspace.write(table, "gold/routes", mode="overwrite")
    return Rows(written=workspace.read.parquet("gold/routes").count())


# --- a step that may not change anything, and one that does not need Spark -----------------------


@task(
    name="trips_reconcile",
    owner_email=OWNER,
    workspace=WorkspaceSpec(pre=[require_dir("gold/daily")], read_only=True),
    controls=QUICK,
    spark=SMALL,
)
def reconcile(workspace: SparkWorkspace, params: Nothing) -> Totals:
    """Check that gold and silver tell the same, to the cent."""
    silver = workspace.read.parquet(TRIPS).agg(F.count(F.lit(1)), F.sum("fare")).collect()[0]
    gold = workspace.read.parquet("gold/daily")
    days, trips, fares = gold.agg(
        F.count_distinct("day"), F.sum("trips"), F.sum("fares")
    ).collect()[0]
    if (trips, fares) != (silver[0], silver[1]):
        raise TaskTerminalError(
            f"gold says {trips} and {fares}, silver {silver[0]} and {silver[1]}"
        )
    return Totals(days=days, trips=trips, fares=fares)


@task(
    name="trips_picture",
    owner_email=OWNER,
    workspace=WorkspaceSpec(
        prefix="gold",
        pre=[require_rows("daily"), require_rows("hourly")],
        post=[require_file("trips.png")],
    ),
    controls=QUICK,
)
def draw(workspace: Path, params: Nothing) -> Rows:
    """Draw the gold tables."""
    return Rows(written=picture.draw(workspace, workspace / "trips.png"))
