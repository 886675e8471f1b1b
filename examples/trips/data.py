"""Days of taxi trips with the blemishes of real ones: skew, duplicates, bad rows, late arrivals.

Every number comes from a hash of the row's own number: the same batch is the same on any machine,
however many cores make it.
"""

from __future__ import annotations

from datetime import date, timedelta

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

FIRST_DAY = date(2026, 3, 2)
BOROUGHS = ("Manhattan", "Brooklyn", "Queens", "Bronx", "Staten Island", "Airports")
ZONES = 120
PAYMENTS = ("card", "cash", "app", "dispute")
BUSY = (1.0, 1.0, 1.05, 1.1, 1.25, 1.0, 0.7)
"""How busy the days of a week are, Monday first."""
SATURDAY = 5


def day_of(batch: int) -> date:
    """Return the calendar day of a batch; batches count from 1."""
    return FIRST_DAY + timedelta(days=batch - 1)


def zones(spark: SparkSession) -> DataFrame:
    """Return the zones of the city; the first boroughs have most of them."""
    rows = []
    for zone in range(1, ZONES + 1):
        borough = BOROUGHS[min(int(len(BOROUGHS) * (zone / ZONES) ** 1.5), len(BOROUGHS) - 1)]
        rows.append((zone, f"Zone {zone:03d}", borough))
    return spark.createDataFrame(rows, "zone_id int, name string, borough string").coalesce(1)


def days_of(batch: int, days: int) -> list[date]:
    """Return the calendar days of a batch and those after it."""
    return [day_of(batch + offset) for offset in range(days)]


def trips(
    spark: SparkSession, batch: int, rows: int, *, days: int = 1, in_cents: bool = False
) -> DataFrame:
    """Return some days of trips as the vendor sends them: all text; ``day`` is that of sending.

    ``in_cents``: the vendor has changed the unit of the fare and told nobody. Every row is
    plausible by itself.
    """

    def chance(salt: str) -> Column:
        return F.pmod(F.xxhash64(F.lit(batch), F.col("id"), F.lit(salt)), F.lit(1_000_000)) / 1e6

    offset = _spread(chance("day"), days_of(batch, days))
    day = F.date_add(F.lit(str(day_of(batch))).cast("date"), offset)
    late = (chance("late") < 0.02) & (offset > 1 - batch)
    # Two rush hours: the sum of two dice leans to the middle, once for each of them.
    morning = 5 * 3600 + (chance("a") + chance("b")) * 3 * 3600
    evening = 14 * 3600 + (chance("c") + chance("d")) * 4.5 * 3600
    early = F.when(F.weekday(day) < SATURDAY, 0.4).otherwise(0.12)
    second = F.when(chance("rush") < early, morning).otherwise(evening)
    midnight = day.cast("timestamp").cast("long")
    start = midnight + second.cast("long") - F.when(late, 86_400).otherwise(0)
    km = F.round(0.6 + 3.2 * -F.log(1 - chance("km") * 0.999), 2)
    minutes = 3 + km * (2.2 + 2 * chance("traffic"))
    fare = F.round((3.2 + km * 1.9 + minutes * 0.35) * F.lit(100 if in_cents else 1), 2)
    made = spark.range(0, rows, 1, 4).select(
        F.format_string("%03d-%07d", F.lit(batch) + offset, F.col("id")).alias("trip_id"),
        F.from_unixtime(start).alias("pickup_at"),
        F.from_unixtime(start + (minutes * 60).cast("long")).alias("dropoff_at"),
        # A few zones have most of the trips.
        (1 + F.floor(ZONES * chance("from") ** 3)).cast("int").alias("pickup_zone"),
        (1 + F.floor(ZONES * chance("to") ** 2)).cast("int").alias("dropoff_zone"),
        km.alias("distance_km"),
        fare.alias("fare"),
        F.round(fare * 0.3 * chance("tip"), 2).alias("tip"),
        F.element_at(
            F.array(*map(F.lit, PAYMENTS)), (1 + F.floor(4 * chance("pay") ** 2)).cast("int")
        ).alias("payment"),
        day.alias("day"),
        chance("damage").alias("damage"),
        F.explode(F.sequence(F.lit(1), F.when(chance("twice") < 0.004, 2).otherwise(1))),
    )
    return _spoiled(made.drop("col"))


def _spread(chance: Column, days: list[date]) -> Column:
    """Give each trip one of the days, by how busy they are."""
    busy = [BUSY[day.weekday()] for day in days]
    found = F.lit(len(days) - 1)
    for number in reversed(range(len(days) - 1)):
        share = sum(busy[: number + 1]) / sum(busy)
        found = F.when(chance < share, number).otherwise(found)
    return found


def _spoiled(made: DataFrame) -> DataFrame:
    """Break about one row in a hundred, each in its own way, and turn all of it into text."""
    damage = F.col("damage")
    texts = {name: F.col(name).cast("string") for name in made.columns if name != "damage"}
    texts["fare"] = F.when(damage < 0.003, F.concat(F.lit("-"), texts["fare"])).otherwise(
        F.when(damage < 0.005, F.lit("n/a")).otherwise(texts["fare"])
    )
    texts["pickup_zone"] = F.when(F.floor(damage * 1000) == 6, F.lit("999")).otherwise(
        F.when(F.floor(damage * 1000) == 7, F.lit(None)).otherwise(texts["pickup_zone"])
    )
    texts["dropoff_at"] = F.when(F.floor(damage * 1000) == 8, texts["pickup_at"]).otherwise(
        texts["dropoff_at"]
    )
    return made.select(*(column.alias(name) for name, column in texts.items()))
