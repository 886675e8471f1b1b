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
    MOMENT_WIDTH,
    NOT_UTF8,
    SAMPLES,
    SHOWN,
    WHOLE_TYPES,
    WRITTEN,
    Mean,
    Measure,
    Measured,
    NotOfType,
    NotTrue,
    Nulls,
    Orphans,
    Outside,
    Repeated,
    Table,
    decimal_of,
    mean_of,
    missing,
    refuse,
    refuse_pair,
)
from perago.protocol.data_bounds import Value, fit
from perago.spark.errors import is_cancelled, sentence
from perago.spark.places import Stored, TablePlace

_WIDEST = 40
# In a session of their own, guards read the same whatever the author has set.
_READING = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.csv.parser.columnPruning.enabled": "false",
    "spark.sql.parquet.mergeSchema": "true",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    # A file that cannot be read must show, whatever the author lets pass.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}
# How hard to work is the author's choice all the same.
_SAME = ("spark.sql.shuffle.partitions", "spark.sql.codegen.wholeStage")


class _UnreadableError(Exception):
    """A table that Spark would read in a way of its own."""


def reading_session(session: SparkSession, own: SparkSession) -> SparkSession:
    """Prepare a session of their own for guards to measure in."""
    same = {key: str(session.conf.get(key)) for key in _SAME}
    for key, value in {**same, **_READING}.items():
        own.conf.set(key, value)
    return own


def measure(
    session: SparkSession, place: TablePlace, table: str, wanted: Sequence[Measure]
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
    except _UnreadableError as error:
        return Table({}, 0, problem=f"cannot be read: {error}")
    except Exception as error:
        if (text := sentence(error)) is None or is_cancelled(text):
            raise
        return Table({}, 0, problem=f"cannot be read: {text}")


def _read(session: SparkSession, stored: Stored) -> DataFrame:
    reader = session.read.format(stored.format)
    if stored.format == "csv":
        reader = reader.options(header=True, escape='"', mode="FAILFAST", emptyValue="")
        reader = reader.option("enforceSchema", value=False)  # All headers must be the same.
        reader = reader.option("multiLine", value=True)
    if stored.format == "json":
        reader = reader.option("mode", "FAILFAST")
    if stored.partitions:
        inside = reader.load(stored.first).columns
        if twice := next((name for name in stored.partitions if name in inside), None):
            raise _UnreadableError(f"column {twice!r} is in the files and names partitions, too")
    return reader.load(stored.address)


def _measured(df: DataFrame, stored: Stored, place: TablePlace, wanted: Sequence[Measure]) -> Table:
    columns = {field.name: field.dataType.simpleString() for field in df.schema.fields}
    found: dict[Measure, Measured] = {}
    sums: dict[Measure, Column] = {}
    written = stored.format == "csv"
    for item in dict.fromkeys(wanted):
        if isinstance(item, NotOfType) and not written:
            continue
        if problem := _refused(item, columns, df):
            found[item] = Measured(problem=problem)
        elif isinstance(item, Orphans):
            found[item] = _orphans(df, item, place)
        else:
            sums[item] = _sum(item, columns)
    row = df.agg(
        F.count(F.lit(1)).alias("rows"),
        _not_text(df.columns if written else ()).alias("no text"),
        *(column.alias(f"m{number}") for number, column in enumerate(sums.values())),
    ).collect()[0]
    if row["no text"]:
        return Table({}, 0, problem=f"cannot be read: {NOT_UTF8}")
    for number, item in enumerate(sums):
        value = row[f"m{number}"]
        if isinstance(item, Mean):
            found[item] = mean_of(item.column, value["total"], value["count"])
        else:
            found[item] = Measured(int(value or 0))
    for item, samples in _samples(df, [one for one in sums if found[one].count], columns).items():
        found[item] = Measured(found[item].count, samples=samples)
    return Table(columns, int(row["rows"]), found, written=written)


def _refused(item: Measure, columns: Mapping[str, str], df: DataFrame) -> str | None:
    if isinstance(item, NotTrue):
        try:
            kind = df.select(F.expr(item.sql).alias("told")).schema["told"].dataType.simpleString()
        except PySparkException as error:
            return f"the expression {item.sql!r} cannot be read: {sentence(error)}"
        return None if kind == "boolean" else f"the expression {item.sql!r} is {kind}, not boolean"
    return refuse(item, columns)


def _not_text(columns: Sequence[str]) -> Column:
    """Count rows in which Spark has put U+FFFD for bytes that are no text."""
    broken = (_name(column).contains("\ufffd") for column in columns)
    return F.sum(F.when(reduce(lambda left, right: left | right, broken, F.lit(False)), 1))  # noqa: FBT003 - a literal of SQL


def _sum(item: Measure, columns: Mapping[str, str]) -> Column:
    """Make the aggregate that answers a measure."""
    if isinstance(item, Mean):
        # Exact, and NULL when it has more digits than there can be.
        digits = (
            (38, 0) if columns[item.column] in WHOLE_TYPES else decimal_of(columns[item.column])
        )
        wide = f"decimal(38,{digits[1]})" if digits else "double"
        value = _name(item.column)
        total = F.sum(value.cast(wide)).alias("total")
        return F.struct(total, F.count(value).alias("count"))
    if isinstance(item, Repeated):
        key = F.when(_complete(item.columns), F.struct(*map(_name, item.columns)))
        return F.count(key) - F.count_distinct(key)
    return F.sum(F.when(_bad(item, columns), 1).otherwise(0))


def _bad(item: Measure, columns: Mapping[str, str]) -> Column:
    """Make the condition of the rows that a measure counts; never NULL."""
    match item:
        case Nulls(column):
            return _name(column).isNull()
        case NotOfType(column):
            return _name(column).isNotNull() & ~_name(column).rlike(item.pattern)
        case NotTrue(sql):
            return ~F.coalesce(F.expr(sql), F.lit(False))  # noqa: FBT003 - a literal of SQL
        case Outside():
            inside = _inside(item, columns[item.column])
            return _name(item.column).isNotNull() & ~F.coalesce(inside, F.lit(False))  # noqa: FBT003 - as above
        case _:
            raise AssertionError(item)


def _inside(item: Outside, type_name: str) -> Column:
    """Compare as the bounds want to be compared, in the type of the column."""
    fitted, value = fit(item, type_name), _comparable(item, type_name)

    def literal(bound: Value) -> Column:
        if decimal_of(type_name) or (item.kind in {"date", "moment"} and type_name != "string"):
            return F.lit(str(bound)).cast(type_name)
        return F.lit(bound)

    tests = [value.isNotNull()]
    if fitted.allowed is not None:
        tests.append(value.isin([literal(bound) for bound in fitted.allowed]))
    if fitted.low is not None:
        tests.append(value >= literal(fitted.low))
    if fitted.high is not None:
        tests.append(value <= literal(fitted.high))
    return reduce(lambda left, right: left & right, tests)


def _comparable(item: Outside, type_name: str) -> Column:
    """Bring a column to the type it is compared in; NULL where it says nothing to compare."""
    value = _name(item.column)
    if type_name == "string" and item.kind != "text":
        value = F.when(value.rlike(WRITTEN[item.kind]), value)
        if item.kind == "moment":
            value = F.regexp_replace(value, "T", " ")
            value = F.rpad(F.regexp_replace(value, r"^([^.]*)\z", "$1."), MOMENT_WIDTH, "0")
    if item.kind == "number" and type_name in {"string", "float", "double"}:
        value = value.cast("double")
        value = F.when(~F.isnan(value), value)
    return value


def _orphans(df: DataFrame, item: Orphans, place: TablePlace) -> Measured:
    stored = place.table(item.other)
    if stored is None:
        return Measured(problem=f"there is no table at {item.other!r}")
    if stored.problem:
        return Measured(problem=f"{item.other!r} {stored.problem}")
    other = _read(df.sparkSession, stored)
    for one, two in zip(item.columns, item.other_columns, strict=True):
        if two not in other.columns:
            return Measured(problem=f"of {item.other!r}, {missing(two, other.columns)}")
        types = (
            found.schema[name].dataType.simpleString() for found, name in ((df, one), (other, two))
        )
        if problem := refuse_pair(*types):
            return Measured(problem=problem)
    keys = [f"k{number}" for number in range(len(item.columns))]
    theirs = _texts(other, item.other_columns, keys).distinct()
    ours = _texts(df.where(_complete(item.columns)), item.columns, keys)
    lost = ours.join(theirs, keys, "left_anti").groupBy(*keys).count()
    row = lost.agg(
        F.sum("count").alias("n"),
        F.slice(F.collect_list(F.struct(*keys)), 1, SAMPLES).alias("s"),
    ).collect()[0]
    pairs = (zip(item.columns, found, strict=True) for found in row["s"] or ())
    samples = tuple(", ".join(f"{name}={value}" for name, value in pair) for pair in pairs)
    return Measured(int(row["n"] or 0), samples=samples)


def _texts(df: DataFrame, columns: Sequence[str], keys: Sequence[str]) -> DataFrame:
    """Write keys as text; the two zeros of floats are one."""
    found = []
    for name, key in zip(columns, keys, strict=True):
        value = _name(name)
        if df.schema[name].dataType.simpleString() in {"float", "double"}:
            value = F.when(value == 0, F.lit(0.0)).otherwise(value)
        found.append(value.cast("string").alias(key))
    return df.select(*found)


def _samples(
    df: DataFrame, broken: Sequence[Measure], columns: Mapping[str, str]
) -> dict[Measure, tuple[str, ...]]:
    """Fetch a few of the rows that break each rule, all in one job."""
    parts = []
    for number, item in enumerate(broken):
        if isinstance(item, Repeated):
            rows = _repeats(df, item)
            shown = [*(f"k{number}" for number in range(len(item.columns))), "times"]
            names = [*item.columns, "times"]
        else:
            first = [item.column] if isinstance(item, Nulls | Outside | NotOfType) else []
            names = shown = list(dict.fromkeys([*first, *columns]))[:SHOWN]
            rows = df.where(_bad(item, columns))
        told = F.concat_ws(", ", *(_told(*pair) for pair in zip(shown, names, strict=True)))
        parts.append(rows.limit(SAMPLES).select(F.lit(number).alias("n"), told.alias("told")))
    found: dict[Measure, tuple[str, ...]] = {}
    if parts:
        for row in reduce(lambda left, right: left.unionAll(right), parts).collect():
            item = broken[row["n"]]
            found[item] = (*found.get(item, ()), row["told"])
    return found


def _repeats(df: DataFrame, item: Repeated) -> DataFrame:
    """Find the keys that are there more than once, as k0, k1, ...: columns may have any name."""
    keys = [_name(name).alias(f"k{number}") for number, name in enumerate(item.columns)]
    found = df.where(_complete(item.columns)).select(*keys)
    counted = found.groupBy(*found.columns).agg(F.count(F.lit(1)).alias("times"))
    return counted.where(F.col("times") > 1)


def _told(column: str, name: str) -> Column:
    text = F.coalesce(_name(column).cast("string"), F.lit("None"))
    return F.concat(F.lit(f"{name}="), F.substring(text, 1, _WIDEST))


def _complete(columns: Sequence[str]) -> Column:
    return reduce(lambda left, right: left & right, (_name(c).isNotNull() for c in columns))


def _name(column: str) -> Column:
    return F.col("`" + column.replace("`", "``") + "`")
