"""Measures tables with pyarrow: for tasks that do not use Spark.

Imported when there is something to measure: pyarrow is an optional extra.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, localcontext
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from perago.data.files import Files, Partition, find, partition_of
from perago.data.types import merge, type_name
from perago.protocol.data import (
    MOMENT_WIDTH,
    NOT_UTF8,
    SAMPLES,
    SHOWN,
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
    kind_of,
    mean_of,
    missing,
    refuse,
    refuse_pair,
)
from perago.protocol.data_bounds import fit

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
_NANOSECONDS = pa.decimal128(38, 0)


def measure(workspace: Path, table: str, wanted: Sequence[Measure]) -> Table | None:
    """Take all measures of one table; None when there is no such table."""
    files = find(workspace, table)
    if files is None:
        return None
    if files.problem:
        return Table({}, 0, problem=files.problem)
    try:
        data = open_table(files)
        return _measured(data, files, workspace, wanted)
    except (pa.ArrowException, OSError) as error:
        # Arrow may name the absolute path, which is of no use once the attempt is gone.
        text = str(error).splitlines()[0].replace(f"{workspace}/", "")
        return Table({}, 0, problem=f"cannot be read: {text}")


def open_table(files: Files) -> ds.Dataset:
    """Open a table; names of partitions are text, whatever they look like."""
    fmt = _format(files)
    found = [partition_of(path.relative_to(files.root)) or () for path in files.paths]
    paths = [str(path) for path in files.paths]
    one = ds.FileSystemDataset.from_paths(
        paths,
        schema=pa.schema([]),
        format=fmt,
        filesystem=LocalFileSystem(),
        partitions=[_expression(partition) for partition in found],
    )
    merged = merge(_schema(fragment) for fragment in one.get_fragments())
    for name, _ in found[0]:
        if name in merged.names:
            raise pa.ArrowInvalid(f"column {name!r} is in the files and names partitions, too")
        merged = merged.append(pa.field(name, pa.string()))
    return one.replace_schema(merged)


def _format(files: Files) -> ds.FileFormat:
    if files.format == "csv":
        return ds.CsvFileFormat(
            parse_options=pv.ParseOptions(newlines_in_values=True),
            convert_options=pv.ConvertOptions(
                column_types={name: pa.string() for name in files.header},
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    if files.format == "parquet":
        return ds.ParquetFileFormat()
    if files.format == "orc":
        return ds.OrcFileFormat()
    raise pa.ArrowInvalid(f"{files.format} files are read by Spark only")


def _expression(partition: Partition) -> pc.Expression:
    """Return what is true of all rows of a file."""
    tests = [pc.field(k).is_null() if v is None else pc.field(k) == v for k, v in partition]
    return reduce(lambda left, right: left & right, tests, pc.scalar(True))  # noqa: FBT003 - no rows are left out


def _schema(fragment: ds.Fragment) -> pa.Schema:
    """Read the columns of a file; what was stored as INT96 is how Spark wrote moments."""
    schema = fragment.physical_schema
    if not isinstance(fragment, ds.ParquetFileFragment):
        return schema
    stored = fragment.metadata.schema
    old = {c.path for c in map(stored.column, range(len(stored))) if c.physical_type == "INT96"}
    for number, field in enumerate(schema):
        if field.name in old:
            schema = schema.set(number, field.with_type(pa.timestamp("ns", "UTC")))
    return schema


def _measured(data: ds.Dataset, files: Files, workspace: Path, wanted: Sequence[Measure]) -> Table:
    columns = {field.name: type_name(field.type) for field in data.schema}
    found: dict[Measure, Measured] = {}
    plain: list[Measure] = []
    written = files.format == "csv"
    for item in dict.fromkeys(wanted):
        if isinstance(item, NotOfType) and not written:
            continue
        if isinstance(item, NotTrue):
            found[item] = Measured(problem="a SQL expression is for Spark tasks")
        elif problem := refuse(item, columns):
            found[item] = Measured(problem=problem)
        elif isinstance(item, Repeated):
            found[item] = _repeated(data, item)
        elif isinstance(item, Orphans):
            found[item] = _orphans(data, item, workspace)
        else:
            plain.append(item)
    # All columns, even to count rows: a file that cannot be read must show.
    batches = map(_readable, data.to_batches()) if written else data.to_batches()
    rows = _scan(batches, plain, columns, found)
    return Table(columns, rows, found, written=written)


def _readable(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Refuse text that other engines would read by putting U+FFFD for bytes that are no text."""
    for column in batch.columns:
        if pc.any(pc.match_substring(column, "\ufffd")).as_py():
            raise pa.ArrowInvalid(NOT_UTF8)
    return batch


def _scan(
    batches: Iterable[pa.RecordBatch],
    items: Sequence[Measure],
    columns: Mapping[str, str],
    found: dict[Measure, Measured],
) -> int:
    """Count in one pass all that is told row by row; a batch at a time is in memory."""
    rows = 0
    sums = {item: _Sum(item.column) for item in items if isinstance(item, Mean)}
    counted = [item for item in items if item not in sums]
    found.update({item: Measured() for item in counted})
    for batch in batches:
        rows += batch.num_rows
        for one in sums.values():
            one.add(batch)
        for item in counted:
            bad = _bad(item, batch, columns)
            count = pc.sum(bad.cast(pa.int64())).as_py() or 0
            if not count:
                continue
            had = found[item]
            samples = had.samples
            if len(samples) < SAMPLES:
                samples += tuple(_rows_of(batch.filter(bad), item, columns))
            found[item] = Measured(had.count + count, samples=samples[:SAMPLES])
    found.update({item: one.mean() for item, one in sums.items()})
    return rows


class _Sum:
    """The sum of a column, exact but for floats."""

    def __init__(self, column: str) -> None:
        self._column = column
        self._count = 0
        self._whole = Decimal(0)
        self._real: list[float] | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the values of a batch."""
        values = batch.column(self._column)
        self._count += len(values) - values.null_count
        if pa.types.is_floating(values.type):
            total = pc.sum(values.cast(pa.float64())).as_py()
            self._real = [*(self._real or ()), *([] if total is None else [total])]
            return
        if not pa.types.is_decimal(values.type):
            values = values.cast(pa.decimal128(20, 0))
        total = pc.sum(values.cast(pa.decimal256(76, values.type.scale))).as_py()
        with localcontext(prec=200):
            self._whole += total or 0

    def mean(self) -> Measured:
        """Divide."""
        total: Decimal | float = self._whole if self._real is None else _added(self._real)
        return mean_of(self._column, total, self._count)


def _added(parts: Sequence[float]) -> float:
    try:
        return math.fsum(parts)
    except (OverflowError, ValueError):  # Too big, or two infinities that cancel.
        return math.nan


def _bad(item: Measure, batch: pa.RecordBatch, columns: Mapping[str, str]) -> Any:
    """Mark the rows that a measure counts; never null."""
    match item:
        case Nulls(column):
            return batch.column(column).is_null()
        case NotOfType(column):
            said = pc.match_substring_regex(batch.column(column), item.pattern)
            return pc.fill_null(pc.invert(said), False)  # noqa: FBT003 - what a null becomes
        case Outside():
            value = batch.column(item.column)
            inside = pc.fill_null(_inside(item, value, columns[item.column]), False)  # noqa: FBT003 - as above
            return pc.and_(value.is_valid(), pc.invert(inside))
        case _:
            raise AssertionError(item)


def _inside(item: Outside, value: Any, type_text: str) -> Any:
    """Compare as the bounds want to be compared, in the type of the column."""
    fitted = fit(item, type_text)
    value = _comparable(item, value, type_text)
    tests = []
    if fitted.allowed is not None:
        same = [pc.equal(value, _literal(bound, item, value.type)) for bound in fitted.allowed]
        tests.append(reduce(pc.or_, same, pa.scalar(False)))  # noqa: FBT003 - among none
    if fitted.low is not None:
        tests.append(pc.greater_equal(value, _literal(fitted.low, item, value.type)))
    if fitted.high is not None:
        tests.append(pc.less_equal(value, _literal(fitted.high, item, value.type)))
    return reduce(pc.and_, tests, value.is_valid())


def _comparable(item: Outside, value: Any, type_text: str) -> Any:
    """Bring a column to the type it is compared in; null where its text says nothing."""
    if kind_of(type_text) == "text" and item.kind != "text":
        said = pc.match_substring_regex(value, WRITTEN[item.kind])
        value = pc.if_else(said, value, pa.scalar(None, value.type))
        if item.kind == "number":
            # Arrow reads no plus sign.
            value = pc.replace_substring_regex(value, r"^\+", "").cast(pa.float64())
        if item.kind == "moment":
            value = pc.replace_substring(value, "T", " ")
            value = pc.replace_substring_regex(value, r"^([^.]*)\z", r"\1.")
            value = pc.utf8_rpad(value, width=MOMENT_WIDTH, padding="0")
    if pa.types.is_float32(value.type):
        value = value.cast(pa.float64())
    if pa.types.is_timestamp(value.type):
        # As numbers: nanoseconds end in the year 2262, the bounds do not.
        nanoseconds = value.type.unit == "ns"
        value = value.cast(pa.int64())
        return value.cast(_NANOSECONDS) if nanoseconds else value
    return value


def _literal(bound: object, item: Outside, kind: pa.DataType) -> pa.Scalar:
    if item.kind == "date" and not pa.types.is_string(kind):
        bound = dt.date.fromisoformat(str(bound))
    if item.kind == "moment" and not pa.types.is_string(kind):
        moment = dt.datetime.fromisoformat(str(bound)).replace(tzinfo=dt.UTC)
        bound = (moment - _EPOCH) // _MICROSECOND * (1000 if kind == _NANOSECONDS else 1)
    return pa.scalar(bound, kind)


def _repeated(data: ds.Dataset, item: Repeated) -> Measured:
    keys = _keys(data, item.columns)
    counts = keys.group_by(keys.column_names, use_threads=False).aggregate([([], "count_all")])
    repeated = counts.filter(pc.greater(counts["count_all"], 1))
    surplus = pc.sum(pc.subtract(repeated["count_all"], 1)).as_py() or 0
    shown = repeated.slice(0, SAMPLES)
    return Measured(surplus, samples=tuple(_told(shown, [*item.columns, "times"])))


def _orphans(data: ds.Dataset, item: Orphans, workspace: Path) -> Measured:
    files = find(workspace, item.other)
    if files is None:
        return Measured(problem=f"there is no table at {item.other!r}")
    if files.problem:
        return Measured(problem=f"{item.other!r} {files.problem}")
    other = open_table(files).schema
    for ours, theirs in zip(item.columns, item.other_columns, strict=True):
        if theirs not in other.names:
            return Measured(problem=f"of {item.other!r}, {missing(theirs, other.names)}")
        types = type_name(data.schema.field(ours).type), type_name(other.field(theirs).type)
        if problem := refuse_pair(*types):
            return Measured(problem=problem)
    ours = _texts(_keys(data, item.columns))
    theirs = _texts(_keys(open_table(files), item.other_columns))
    names = ours.column_names
    theirs = theirs.group_by(names, use_threads=False).aggregate([])
    lost = ours.join(theirs, names, join_type="left anti", use_threads=False)
    shown = lost.group_by(names, use_threads=False).aggregate([]).slice(0, SAMPLES)
    return Measured(lost.num_rows, samples=tuple(_told(shown, item.columns)))


def _keys(data: ds.Dataset, columns: Sequence[str]) -> pa.Table:
    """Read the keys without a missing part as k0, k1, ...; equal floats are made the same bits."""
    table = data.to_table(columns=list(dict.fromkeys(columns)))
    found = {}
    for number, name in enumerate(columns):
        column = table[name]
        if pa.types.is_floating(column.type):
            column = pc.if_else(pc.equal(column, 0.0), pa.scalar(0.0, column.type), column)
            column = pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), column.type), column)
        found[f"k{number}"] = column
    return pa.table(found).drop_null()


def _texts(keys: pa.Table) -> pa.Table:
    """Compare keys as text: one side may be a partition, or a CSV file."""
    return pa.table({name: keys[name].cast(pa.string()) for name in keys.column_names})


def _rows_of(bad: pa.RecordBatch, item: Measure, columns: Mapping[str, str]) -> Iterator[str]:
    first = [item.column] if isinstance(item, Nulls | Outside | NotOfType) else []
    shown = list(dict.fromkeys([*first, *columns]))[:SHOWN]
    yield from _told(pa.Table.from_batches([bad.select(shown).slice(0, SAMPLES)]), shown)


def _told(rows: pa.Table, names: Sequence[str]) -> Iterator[str]:
    """Show rows, whatever is in them."""
    for number in range(rows.num_rows):
        values = (shown_value(column[number]) for column in rows.columns)
        yield ", ".join(f"{name}={value}" for name, value in zip(names, values, strict=True))


def shown_value(value: pa.Scalar, most: int = 40) -> str:
    """Write a value in as many characters as it takes to recognise it, whatever is in it."""
    try:
        text = str(value.as_py())
    except (ValueError, OverflowError, pa.ArrowException):  # No UTF-8, or beyond the year 9999.
        text = _described(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def _described(value: pa.Scalar) -> str:
    try:
        return repr(value)
    except (ValueError, OverflowError, pa.ArrowException):  # It is made of the same value.
        return f"a value of {value.type}"
