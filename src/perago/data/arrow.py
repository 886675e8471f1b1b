"""Measures tables with pyarrow: for tasks that do not use Spark.

Imported when there is something to measure: pyarrow is an optional extra.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
import pyarrow.dataset as ds

from perago.data.files import Files, find
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

_SIMPLE = {
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.uint8(): "smallint",
    pa.uint16(): "int",
    pa.uint32(): "bigint",
    pa.uint64(): "decimal(20,0)",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
}


def measure(workspace: Path, table: str, wanted: Sequence[Measure]) -> Table | None:
    """Take all measures of one table; None when there is no such table."""
    files = find(workspace, table)
    if files is None:
        return None
    if files.problem:
        return Table({}, 0, problem=files.problem)
    try:
        data = _read(files)
        return _measured(data, files, workspace, wanted)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OSError) as error:
        return Table({}, 0, problem=f"cannot be read: {str(error).splitlines()[0]}")


def type_name(kind: pa.DataType) -> str:
    """Name a type as Spark would."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_timestamp(kind):
        # Nanoseconds come from INT96, which is how Spark used to write a moment.
        return "timestamp" if kind.tz or kind.unit == "ns" else "timestamp_ntz"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _SIMPLE.get(kind) or _nested(kind)


def _nested(kind: pa.DataType) -> str:
    if pa.types.is_map(kind):
        return f"map<{type_name(kind.key_type)},{type_name(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{f.name}:{type_name(f.type)}' for f in kind)}>"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"array<{type_name(kind.value_type)}>"
    return str(kind)


def _read(files: Files) -> ds.Dataset:
    """Open a table; names of partitions are text, whatever they look like."""
    fmt: Any = files.format
    if fmt == "csv":
        fmt = ds.CsvFileFormat(
            convert_options=pv.ConvertOptions(
                column_types={name: pa.string() for name in files.header},
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            )
        )
    elif fmt not in {"parquet", "orc"}:
        raise pa.ArrowInvalid(f"{fmt} files are read by Spark only")
    keys = dict.fromkeys(
        part.partition("=")[0]
        for path in files.paths
        for part in path.relative_to(files.root).parts[:-1]
        if "=" in part
    )
    partitioning = ds.partitioning(pa.schema([(key, pa.string()) for key in keys]), flavor="hive")
    paths = [str(path) for path in files.paths]
    base = str(files.root) if files.root.is_dir() else None
    one = ds.dataset(paths, format=fmt, partitioning=partitioning, partition_base_dir=base)
    schemas = [fragment.physical_schema for fragment in one.get_fragments()]
    merged = pa.unify_schemas([*schemas, partitioning.schema])
    return one.replace_schema(merged)


def _measured(data: ds.Dataset, files: Files, workspace: Path, wanted: Sequence[Measure]) -> Table:
    columns = {field.name: type_name(field.type) for field in data.schema}
    found: dict[Measure, Found] = {}
    plain: list[Measure] = []
    written = files.format == "csv"
    for item in dict.fromkeys(wanted):
        if isinstance(item, Unwritten) and not written:
            continue
        if isinstance(item, Untrue):
            found[item] = Found(problem="a SQL expression is for Spark tasks")
        elif problem := refuse(item, columns):
            found[item] = Found(problem=problem)
        elif isinstance(item, Repeated):
            found[item] = _repeated(data, item)
        elif isinstance(item, Orphans):
            found[item] = _orphans(data, item, workspace)
        elif isinstance(item, Mean):
            found[item] = _mean(data, item)
        else:
            plain.append(item)
    rows = _scan(data, plain, columns, found)
    return Table(columns, rows, found, written=written)


def _scan(
    data: ds.Dataset,
    items: Sequence[Measure],
    columns: Mapping[str, str],
    found: dict[Measure, Found],
) -> int:
    """Count in one pass all that is told row by row; a batch at a time is in memory."""
    rows = 0
    found.update({item: Found() for item in items})
    # All columns, even to count rows: a file that cannot be read must show.
    for batch in data.to_batches():
        rows += batch.num_rows
        for item in items:
            bad = _bad(item, batch, columns)
            count = pc.sum(bad.cast(pa.int64())).as_py() or 0
            if not count:
                continue
            had = found[item]
            samples = had.samples
            if len(samples) < SAMPLES:
                samples += tuple(_rows_of(batch.filter(bad), item, columns))
            found[item] = Found(had.count + count, samples=samples[:SAMPLES])
    return rows


def _bad(item: Measure, batch: pa.RecordBatch, columns: Mapping[str, str]) -> Any:
    """Mark the rows that a measure counts; never null."""
    match item:
        case Nulls(column):
            return batch.column(column).is_null()
        case Unwritten(column):
            said = pc.match_substring_regex(batch.column(column), item.pattern)
            return pc.fill_null(pc.invert(said), False)  # noqa: FBT003 - what a null becomes
        case Outside():
            value = batch.column(item.column)
            inside = pc.fill_null(_inside(item, value, columns[item.column]), False)  # noqa: FBT003 - as above
            return pc.and_(value.is_valid(), pc.invert(inside))
        case _:
            raise AssertionError(item)


def _inside(item: Outside, value: Any, type_text: str) -> Any:
    """Compare as the bounds want to be compared."""
    value = _comparable(item, value, type_text)
    if item.allowed is not None:
        same = [pc.equal(value, _literal(bound, value.type)) for bound in item.allowed]
        return reduce(pc.or_, same)
    tests = []
    if item.low is not None:
        tests.append(pc.greater_equal(value, _literal(item.low, value.type)))
    if item.high is not None:
        tests.append(pc.less_equal(value, _literal(item.high, value.type)))
    return reduce(pc.and_, tests)


def _comparable(item: Outside, value: Any, type_text: str) -> Any:
    """Bring a column to the type it is compared in; null where its text says nothing."""
    if pa.types.is_dictionary(value.type):
        value = value.dictionary_decode()
    if kind_of(type_text) == "text" and item.kind != "text":
        if item.kind == "moment":
            value = pc.replace_substring(value, "T", " ")
        said = pc.match_substring_regex(value, WRITTEN[item.kind])
        value = pc.if_else(said, value, pa.scalar(None, value.type))
        # Arrow reads no plus sign.
        value = pc.replace_substring_regex(value, r"^\+", "")
    if item.kind == "number":
        whole = type_text in {"tinyint", "smallint", "int", "bigint"} and _all_whole(item)
        value = value.cast(pa.int64() if whole else pa.float64(), safe=False)
    return value


def _literal(bound: Bound, kind: pa.DataType) -> pa.Scalar:
    value: object = bound.value
    if bound.kind == "date" and not pa.types.is_string(kind):
        value = dt.date.fromisoformat(str(value))
    if bound.kind == "moment" and not pa.types.is_string(kind):
        moment = dt.datetime.fromisoformat(str(value))
        value = moment.replace(tzinfo=dt.UTC) if kind.tz else moment
    return pa.scalar(value, kind)


def _all_whole(item: Outside) -> bool:
    bounds = (item.low, item.high, *(item.allowed or ()))
    return all(isinstance(bound.value, int) for bound in bounds if bound is not None)


def _repeated(data: ds.Dataset, item: Repeated) -> Found:
    keys = _keys(data, item.columns)
    counts = keys.group_by(list(item.columns), use_threads=False).aggregate([([], "count_all")])
    repeated = counts.filter(pc.greater(counts["count_all"], 1))
    surplus = pc.sum(pc.subtract(repeated["count_all"], 1)).as_py() or 0
    shown = repeated.slice(0, SAMPLES).rename_columns([*item.columns, "times"])
    return Found(surplus, samples=tuple(map(_shown, shown.to_pylist())))


def _orphans(data: ds.Dataset, item: Orphans, workspace: Path) -> Found:
    files = find(workspace, item.other)
    if files is None or files.problem:
        return Found(problem=f"there is no table at {item.other!r}")
    other = _read(files)
    if missing := [name for name in item.other_columns if name not in other.schema.names]:
        return Found(problem=f"column {missing[0]!r} of {item.other!r} is missing")
    names = [f"k{number}" for number in range(len(item.columns))]
    ours = _texts(_keys(data, item.columns).rename_columns(names))
    theirs = _texts(_keys(other, item.other_columns).rename_columns(names))
    theirs = theirs.group_by(names, use_threads=False).aggregate([])
    lost = ours.join(theirs, names, join_type="left anti", use_threads=False)
    shown = lost.group_by(names, use_threads=False).aggregate([]).slice(0, SAMPLES)
    samples = tuple(map(_shown, shown.rename_columns(list(item.columns)).to_pylist()))
    return Found(lost.num_rows, samples=samples)


def _keys(data: ds.Dataset, columns: Sequence[str]) -> pa.Table:
    """Read the keys without a missing part; equal floats are made the same bits."""
    table = data.to_table(columns=list(columns))
    for number, name in enumerate(columns):
        column = table[name]
        if pa.types.is_floating(column.type):
            column = pc.if_else(pc.equal(column, 0.0), pa.scalar(0.0, column.type), column)
            column = pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), column.type), column)
            table = table.set_column(number, name, column)
    return table.drop_null()


def _texts(keys: pa.Table) -> pa.Table:
    """Compare keys as text: one side may be a partition, or a CSV file."""
    return pa.table({name: keys[name].cast(pa.string()) for name in keys.column_names})


def _mean(data: ds.Dataset, item: Mean) -> Found:
    column = data.to_table(columns=[item.column])[item.column]
    value = pc.mean(column.cast(pa.float64(), safe=False)).as_py()
    return Found(value=value)


def _rows_of(bad: pa.RecordBatch, item: Measure, columns: Mapping[str, str]) -> Iterator[str]:
    first = [item.column] if isinstance(item, Nulls | Outside | Unwritten) else []
    shown = list(dict.fromkeys([*first, *columns]))[:SHOWN]
    yield from map(_shown, bad.select(shown).slice(0, SAMPLES).to_pylist())


def _shown(row: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={_cut(value)}" for name, value in row.items())


def _cut(value: object) -> str:
    text = str(value)
    return text if len(text) <= 40 else text[:39] + "…"  # noqa: PLR2004 - enough to recognise it
