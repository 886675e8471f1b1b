"""Measures tables with Spark: one aggregation for a table, a small job more for each broken rule.

Imported when there is something to measure: PySpark is slow to import, and an optional extra.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from perago.protocol.data import (
    SAMPLES,
    SHOWN,
    WRITTEN,
    Bound,
    Found,
    Mean,
    Measure,
    Nulls,
    Orphans,
    Outside,
    Repeated,
    Table,
    Untrue,
    Unwritten,
    kind_of,
    refuse,
)
from perago.spark.errors import is_cancelled, sentence
from perago.spark.places import Place, Stored

_WIDEST = 40
# In a session of their own, guards read the same whatever the author has set.
_READING = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.csv.parser.columnPruning.enabled": "false",
    "spark.sql.parquet.mergeSchema": "true",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
}
# How hard to work is the author's choice all the same.
_SAME = ("spark.sql.shuffle.partitions", "spark.sql.codegen.wholeStage")


def reading_session(session: SparkSession, own: SparkSession) -> SparkSession:
    """Prepare a session of their own for guards to measure in."""
    same = {key: str(session.conf.get(key)) for key in _SAME}
    for key, value in {**same, **_READING}.items():
        own.conf.set(key, value)
    return own


def measure(
    session: SparkSession, place: Place, table: str, wanted: Sequence[Measure]
) -> Table | None:
    """Take all measures of one table; None when there is no such table."""
    stored = place.table(table)
    if stored is None:
        return None
    if stored.problem:
        return Table({}, 0, problem=stored.problem)
    try:
        df = _read(session, stored)
        return _measured(df, stored, place, wanted)
    except Exception as error:
        if (text := sentence(error)) is None or is_cancelled(text):
            raise
        return Table({}, 0, problem=f"cannot be read: {text}")


def _read(session: SparkSession, stored: Stored) -> DataFrame:
    reader = session.read.format(stored.format)
    if stored.format == "csv":
        reader = reader.options(header=True, escape='"', mode="FAILFAST", emptyValue="")
        reader = reader.option("enforceSchema", value=False)  # All headers must be the same.
    return reader.load(stored.address)


def _measured(df: DataFrame, stored: Stored, place: Place, wanted: Sequence[Measure]) -> Table:
    columns = {field.name: field.dataType.simpleString() for field in df.schema.fields}
    found: dict[Measure, Found] = {}
    sums: dict[Measure, Column] = {}
    written = stored.format == "csv"
    for item in dict.fromkeys(wanted):
        if isinstance(item, Unwritten) and not written:
            continue
        if problem := _refused(item, columns, df):
            found[item] = Found(problem=problem)
        elif isinstance(item, Orphans):
            found[item] = _orphans(df, item, place)
        else:
            sums[item] = _sum(item, columns)
    row = df.agg(
        F.count(F.lit(1)).alias("rows"),
        *(column.alias(f"m{number}") for number, column in enumerate(sums.values())),
    ).collect()[0]
    for number, item in enumerate(sums):
        value = row[f"m{number}"]
        if isinstance(item, Mean):
            found[item] = Found(value=None if value is None else float(value))
        else:
            found[item] = Found(int(value or 0))
    for item, samples in _samples(df, [one for one in sums if found[one].count], columns).items():
        found[item] = Found(found[item].count, samples=samples)
    return Table(columns, int(row["rows"]), found, written=written)


def _refused(item: Measure, columns: Mapping[str, str], df: DataFrame) -> str | None:
    if isinstance(item, Untrue):
        try:
            kind = df.select(F.expr(item.sql).alias("told")).schema["told"].dataType.simpleString()
        except PySparkException as error:
            return f"the expression {item.sql!r} cannot be read: {sentence(error)}"
        return None if kind == "boolean" else f"the expression {item.sql!r} is {kind}, not boolean"
    return refuse(item, columns)


def _sum(item: Measure, columns: Mapping[str, str]) -> Column:
    """Make the aggregate that answers a measure."""
    if isinstance(item, Mean):
        return F.avg(_name(item.column).cast("double"))
    if isinstance(item, Repeated):
        key = F.when(_complete(item.columns), F.struct(*map(_name, item.columns)))
        return F.count(key) - F.count_distinct(key)
    return F.sum(F.when(_bad(item, columns), 1).otherwise(0))


def _bad(item: Measure, columns: Mapping[str, str]) -> Column:
    """Make the condition of the rows that a measure counts; never NULL."""
    match item:
        case Nulls(column):
            return _name(column).isNull()
        case Unwritten(column):
            return _name(column).isNotNull() & ~_name(column).rlike(item.pattern)
        case Untrue(sql):
            return ~F.coalesce(F.expr(sql), F.lit(False))  # noqa: FBT003 - a literal of SQL
        case Outside():
            inside = _inside(item, columns[item.column])
            return _name(item.column).isNotNull() & ~F.coalesce(inside, F.lit(False))  # noqa: FBT003 - as above
        case _:
            raise AssertionError(item)


def _inside(item: Outside, type_name: str) -> Column:
    """Compare as the bounds want to be compared."""
    value = _name(item.column)
    kind, whole = item.kind, type_name in {"tinyint", "smallint", "int", "bigint"}
    if kind_of(type_name) == "text" and kind != "text":
        if kind == "moment":
            value = F.regexp_replace(value, "T", " ")
        value = F.when(value.rlike(WRITTEN[kind]), value)
    if kind == "number" and not (whole and _all_whole(item)):
        value = value.cast("double")
        value = F.when(~F.isnan(value), value)

    def literal(bound: Bound) -> Column:
        if kind in {"date", "moment"} and kind_of(type_name) != "text":
            return F.lit(bound.value).cast(type_name)
        return F.lit(bound.value)

    if item.allowed is not None:
        return value.isin([literal(bound) for bound in item.allowed])
    tests = []
    if item.low is not None:
        tests.append(value >= literal(item.low))
    if item.high is not None:
        tests.append(value <= literal(item.high))
    return reduce(lambda left, right: left & right, tests)


def _all_whole(item: Outside) -> bool:
    bounds = (item.low, item.high, *(item.allowed or ()))
    return all(isinstance(bound.value, int) for bound in bounds if bound is not None)


def _orphans(df: DataFrame, item: Orphans, place: Place) -> Found:
    stored = place.table(item.other)
    if stored is None or stored.problem:
        return Found(problem=f"there is no table at {item.other!r}")
    other = _read(df.sparkSession, stored)
    if missing := [name for name in item.other_columns if name not in other.columns]:
        return Found(problem=f"column {missing[0]!r} of {item.other!r} is missing")
    keys = [f"k{number}" for number in range(len(item.columns))]
    # Compared as text: one side may be a partition, or a CSV file.
    theirs = other.select(
        *(_name(c).cast("string").alias(k) for c, k in zip(item.other_columns, keys, strict=True))
    ).distinct()
    ours = df.where(_complete(item.columns)).select(
        *(_name(c).cast("string").alias(k) for c, k in zip(item.columns, keys, strict=True))
    )
    lost = ours.join(theirs, keys, "left_anti").groupBy(*keys).count()
    row = lost.agg(
        F.sum("count").alias("n"),
        F.slice(F.collect_list(F.struct(*keys)), 1, SAMPLES).alias("s"),
    ).collect()[0]
    pairs = (zip(item.columns, found, strict=True) for found in row["s"] or ())
    samples = tuple(", ".join(f"{name}={value}" for name, value in pair) for pair in pairs)
    return Found(int(row["n"] or 0), samples=samples)


def _samples(
    df: DataFrame, broken: Sequence[Measure], columns: Mapping[str, str]
) -> dict[Measure, tuple[str, ...]]:
    """Fetch a few of the rows that break each rule, all in one job."""
    parts = []
    for number, item in enumerate(broken):
        if isinstance(item, Repeated):
            keys = df.where(_complete(item.columns)).groupBy(*map(_name, item.columns))
            rows = keys.agg(F.count(F.lit(1)).alias("times")).where("times > 1")
            shown = [*item.columns, "times"]
        else:
            first = [item.column] if isinstance(item, Nulls | Outside | Unwritten) else []
            shown = list(dict.fromkeys([*first, *columns]))[:SHOWN]
            rows = df.where(_bad(item, columns))
        told = F.concat_ws(", ", *(_told(name) for name in shown))
        parts.append(rows.limit(SAMPLES).select(F.lit(number).alias("n"), told.alias("told")))
    found: dict[Measure, tuple[str, ...]] = {}
    if parts:
        for row in reduce(lambda left, right: left.unionAll(right), parts).collect():
            item = broken[row["n"]]
            found[item] = (*found.get(item, ()), row["told"])
    return found


def _told(column: str) -> Column:
    text = F.coalesce(_name(column).cast("string"), F.lit("None"))
    return F.concat(F.lit(f"{column}="), F.substring(text, 1, _WIDEST))


def _complete(columns: Sequence[str]) -> Column:
    return reduce(lambda left, right: left & right, (_name(c).isNotNull() for c in columns))


def _name(column: str) -> Column:
    return F.col("`" + column.replace("`", "``") + "`")
