"""The figures of a report, added up by Spark: for event logs that one process would chew on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perago.history.figures import (
    COUNTS,
    SHARES,
    WRITES,
    AttemptFilter,
    Spread,
    Tallies,
    TaskFigures,
    in_order,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_BYTES = ("bytes_read", "bytes_written")


def report(
    attempts: DataFrame, wanted: AttemptFilter, most: int
) -> tuple[list[TaskFigures], list[tuple[str, float, float]]]:
    """Return the figures of the attempts that count, and the newest of their publications."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - as everybody calls it

    since = F.timestamp_micros(F.lit(int(wanted.since * 1e6)))
    chosen = attempts.where(F.col("started_at") >= since)
    for column, value in wanted.equal().items():
        chosen = chosen.where(F.col(column) == value)
    points = []
    if most:
        writes = chosen.where(F.col("kind").isin(*WRITES) & F.col("publish_seconds").isNotNull())
        at = F.unix_micros("decided_at") / 1e6
        newest = writes.orderBy(F.desc("decided_at")).limit(most)
        rows = newest.select("task", at.alias("at"), "publish_seconds").collect()
        points = [(row[0], float(row[1]), float(row[2])) for row in reversed(rows)]
    return figures(chosen), points


def figures(attempts: DataFrame) -> list[TaskFigures]:
    """Add the table ``attempts`` up, task by task, exactly as one process would."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - as above

    writes = ", ".join(repr(kind) for kind in sorted(WRITES))
    moved = F.when(F.expr(f"kind IN ({writes})"), F.col("publish_seconds"))
    rows = attempts.groupBy("task").agg(
        F.count("*").alias("attempts"),
        *(F.count(F.when(F.expr(sql), 1)).alias(name) for name, sql in COUNTS.items()),
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in _BYTES),
        _spread(moved).alias("publish"),
        _spread(F.col("after_body_seconds")).alias("after_body"),
    )
    exploded = attempts.select("task", F.explode("phases").alias("phase", "seconds"))
    by_phase = exploded.groupBy("task", "phase").agg(_spread(F.col("seconds")).alias("spread"))
    phases: dict[str, dict[str, Spread]] = {}
    for row in by_phase.collect():
        found = _read(row["spread"])
        if found is not None:
            phases.setdefault(row["task"], {})[row["phase"]] = found
    names = ("attempts", *COUNTS, *_BYTES)
    return [
        TaskFigures(
            task=row["task"],
            tallies=Tallies(**{name: row[name] for name in names}),
            publish=_read(row["publish"]),
            after_body=_read(row["after_body"]),
            phases=in_order(phases.get(row["task"], {})),
        )
        for row in rows.orderBy("task").collect()
    ]


def _spread(seconds: Column) -> Column:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - as above

    return F.struct(
        F.count(seconds).alias("count"),
        F.percentile(seconds, list(SHARES)).alias("shares"),
        F.max(seconds).alias("longest"),
    )


def _read(found: Any) -> Spread | None:
    if not found["count"]:
        return None
    p50, p90, p99 = found["shares"]
    return Spread(found["count"], p50, p90, p99, found["longest"])
