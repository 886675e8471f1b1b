"""Spark and pyarrow say the same of any table (X5)."""

from __future__ import annotations

import csv
import datetime as dt
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from perago import data
from perago.data import arrow, types
from perago.protocol.data import DataGuard, Measure, Measured, Table
from perago.spark import measuring
from perago.spark.places import LocalPlace
from tests.spark.conftest import new_session

# Every example is a handful of Spark jobs: shrinking one would take minutes.
QUICKLY = (Phase.explicit, Phase.generate)
DAY, MOMENT = dt.date(2026, 3, 2), dt.datetime(2026, 3, 2, 12)  # noqa: DTZ001 - as Parquet has it
TYPES: dict[str, pa.DataType] = {
    "whole": pa.int64(),
    "small": pa.int32(),
    "real": pa.float64(),
    "text": pa.string(),
    "truth": pa.bool_(),
    "day": pa.date32(),
    "moment": pa.timestamp("us", tz="UTC"),
    "local": pa.timestamp("us"),
    "price": pa.decimal128(8, 2),
}
RULES: list[DataGuard] = [
    data.require_rows("t", 1, 5),
    data.require_not_null("t", "whole", "text", "moment"),
    data.require_unique("t", "whole"),
    data.require_unique("t", "real"),
    data.require_unique("t", "text", "small"),
    data.require_values("t", "whole", min=-3, max=3),
    data.require_values("t", "whole", min=-2.5),
    data.require_values("t", "small", allowed={0, 1, 2}),
    data.require_values("t", "real", min=-1.5, max=2),
    data.require_values("t", "real", allowed={0.0, 1.5}),
    data.require_values("t", "text", min="b", max="y"),
    data.require_values("t", "text", allowed={"a", "ü", "1.5"}),
    data.require_values("t", "text", min=1, max_share=0.25),
    data.require_values("t", "text", max=DAY),
    data.require_values("t", "truth", allowed={True}),
    data.require_values("t", "day", min=DAY, max=DAY + dt.timedelta(2)),
    data.require_values("t", "moment", min=MOMENT.replace(tzinfo=dt.UTC)),
    data.require_values("t", "local", min=MOMENT),
    data.require_values("t", "price", min=0, max=10.5),
    data.require_values("t", "absent", min=0),
    data.require_values("t", "truth", min=0),
    data.require_foreign_key("t", "small", "other", "id"),
    data.require_foreign_key("t", ["text", "small"], "other", ["name", "id"]),
    data.require_foreign_key("t", "small", "nowhere", "id"),
    data.max_drift("t", rows=0.5, mean={"whole": 0.1, "real": 0.5, "price": 0.1}),
    data.require_schema("t", {name: types.type_name(kind) for name, kind in TYPES.items()}),
    data.require_schema("t", {"whole": "int", "text": "string", "absent": "date"}, extra=True),
]
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "whole": st.integers(-5, 5) | st.sampled_from([2**63 - 1, -(2**63)]),
    "small": st.integers(-3, 3),
    "real": st.sampled_from([0.0, -0.0, 1.5, -1.5, 2.0, math.nan, math.inf, 1e300]),
    "text": st.sampled_from(["a", "b", "ü", "Z", "", "1", "1.5", "+2", "1e3", "x1", "2026-03-01"]),
    "truth": st.booleans(),
    "day": st.dates(DAY - dt.timedelta(3), DAY + dt.timedelta(3)),
    "moment": st.datetimes(MOMENT - dt.timedelta(1), MOMENT + dt.timedelta(1)),
    "local": st.datetimes(MOMENT - dt.timedelta(1), MOMENT + dt.timedelta(1)),
    "price": st.decimals(-10, 20, places=2),
}
ROW = st.fixed_dictionaries({name: st.none() | value for name, value in VALUES.items()})


def _some(rules: list[DataGuard]) -> st.SearchStrategy[list[DataGuard]]:
    numbers = st.lists(st.integers(0, len(rules) - 1), min_size=4, max_size=7, unique=True)
    return numbers.map(lambda found: [rules[number] for number in found])


@pytest.fixture(scope="module")
def reading(jvm: None) -> Any:
    attempt = new_session("reading")
    yield measuring.reading_session(attempt.open(), attempt.beside())
    attempt.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tables")
    pq.write_table(pa.table({"id": [0, 1], "name": ["a", "ü"]}), root / "other.parquet")
    (root / "other").mkdir()
    shutil.move(root / "other.parquet", root / "other" / "o.parquet")
    return root


def _compare(reading: SparkSession, root: Path, rules: Sequence[DataGuard]) -> None:
    """Measure with both, and hold the verdicts against each other."""
    wanted: list[Measure] = []
    for rule in rules:
        wanted += [*rule.measures(), *rule.measures(written=True)]
    ours = arrow.measure(root, "t", wanted)
    theirs = measuring.measure(reading, LocalPlace(root, {}), "t", wanted)
    assert ours is not None
    assert theirs is not None
    assert _plain(ours) == _plain(theirs)
    before = Table({}, 4, {m: Measured(value=1.0) for m in wanted})
    for rule in rules:
        one, two = rule.verdict(ours, before), rule.verdict(theirs, before)
        assert (one.violation, one.rows, one.offending) == (two.violation, two.rows, two.offending)
        assert bool(one.samples) == bool(two.samples)


def _plain(table: Table) -> Any:
    found = {
        measure: (item.count, _close(item.value), item.problem)
        for measure, item in table.found.items()
    }
    return table.columns, table.rows, found, table.written, bool(table.problem)


def _close(value: float | None) -> object:
    return value if value is None else f"{value:.9e}"


@settings(
    max_examples=12,
    deadline=None,
    phases=QUICKLY,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(rows=st.lists(ROW, max_size=12), files=st.integers(1, 2), rules=_some(RULES))
def test_x5_parquet(
    reading: SparkSession,
    place: Path,
    rows: list[dict[str, Any]],
    files: int,
    rules: list[DataGuard],
) -> None:
    shutil.rmtree(place / "t", ignore_errors=True)
    (place / "t").mkdir()
    for number in range(files):
        part = rows[number::files]
        for row in part:
            row["moment"] = row["moment"] and row["moment"].replace(tzinfo=dt.UTC)
        table = pa.Table.from_pylist(part, schema=pa.schema(list(TYPES.items())))
        pq.write_table(table, place / "t" / f"part-{number}.parquet")
    _compare(reading, place, rules)


CSV_RULES: list[DataGuard] = [
    data.require_rows("t", 1, 5),
    data.require_not_null("t", "a", "b"),
    data.require_unique("t", "a"),
    data.require_values("t", "a", min=1, max=100),
    data.require_values("t", "a", allowed={1, 1.5}),
    data.require_values("t", "b", min=DAY),
    data.require_values("t", "b", max=MOMENT),
    data.require_values("t", "k", min=1),
    data.require_foreign_key("t", "k", "other", "id"),
    data.require_schema("t", {"a": "double", "b": "date", "k": "int"}),
    data.require_schema("t", {"a": "int", "b": "timestamp", "k": "boolean"}),
]
TEXTS = st.sampled_from(
    [
        *("", "1", "+1", "1.5", "-3", "1e2", "1e999", "abc", " 1", "NaN", "x,y", 'quo"te', "true"),
        *("2026-03-02", "2026-03-40", "2026-03-02 12:00:00", "2026-03-02T11:59:59.5"),
    ]
)


@settings(
    max_examples=8,
    deadline=None,
    phases=QUICKLY,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(rows=st.lists(st.tuples(TEXTS, TEXTS), max_size=10), rules=_some(CSV_RULES))
def test_x5_csv_with_partitions(
    reading: SparkSession, place: Path, rows: list[tuple[str, str]], rules: list[DataGuard]
) -> None:
    shutil.rmtree(place / "t", ignore_errors=True)
    for key in ("0", "2", "x y"):
        folder = place / "t" / f"k={key}"
        folder.mkdir(parents=True)
        with (folder / "part.csv").open("w", newline="") as lines:
            writer = csv.writer(lines, lineterminator="\n")
            writer.writerow(("a", "b"))
            writer.writerows(rows if key != "2" else rows[:2])
    _compare(reading, place, rules)


def _strange(root: Path) -> dict[str, Any]:
    """Make tables that are none, each in its own way."""
    made = {
        "two formats": {"a.parquet": b"x", "b.csv": b"a\n"},
        "no format": {"a.bin": b"x"},
        "not parquet": {"a.parquet": b"not parquet"},
        "other columns": {"a.csv": b"a,b\n1,2\n", "b.csv": b"b,a\n1,2\n"},
        "a column twice": {"a.csv": b"a,a\n1,2\n"},
        "short rows": {"a.csv": b"a,b\n1\n"},
        "nothing": {"a.csv": b""},
    }
    for name, files in made.items():
        (root / name / "t").mkdir(parents=True)
        for file, content in files.items():
            (root / name / "t" / file).write_bytes(content)
    return made


def test_x5_what_is_no_table_breaks_every_rule(reading: SparkSession, tmp_path: Path) -> None:
    for name in _strange(tmp_path):
        for table in (
            arrow.measure(tmp_path / name, "t", ()),
            measuring.measure(reading, LocalPlace(tmp_path / name, {}), "t", ()),
        ):
            assert table is not None, name
            assert table.problem, name
            verdict = data.require_rows("t", 0).verdict(table)
            assert verdict.violation is not None
            assert verdict.violation.startswith("'t' ")
    assert arrow.measure(tmp_path, "absent", ()) is None
    assert measuring.measure(reading, LocalPlace(tmp_path, {}), "absent", ()) is None


def test_x5_sql_expressions_are_for_spark(reading: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2, None]}), tmp_path / "t.parquet")
    for sql, problem in (
        ("a > 1", "2 of 3 rows do not satisfy a > 1"),
        ("a > 0 OR a IS NULL", None),
        ("a +", "cannot be read"),
        ("b > 1", "cannot be read"),
        ("a + 1", "is bigint, not boolean"),
    ):
        rule = data.expect("t.parquet", sql)
        place = LocalPlace(tmp_path, {})
        measured = measuring.measure(reading, place, "t.parquet", rule.measures())
        found = rule.verdict(measured).violation
        assert (found is None) == (problem is None), (sql, found)
        assert problem is None or problem in (found or ""), (sql, found)


def test_x5_one_job_measures_a_table(reading: SparkSession, tmp_path: Path) -> None:
    """All rules but foreign keys share one aggregation when nothing is wrong."""
    pq.write_table(pa.table({"a": [1, 2], "b": ["x", "y"]}), tmp_path / "t.parquet")
    rules: list[DataGuard] = [
        data.require_not_null("t.parquet", "a", "b"),
        data.require_unique("t.parquet", "a"),
        data.require_values("t.parquet", "a", min=1),
        data.expect("t.parquet", "a < 3"),
        data.max_drift("t.parquet", mean={"a": 1}),
    ]
    wanted = [measure for rule in rules for measure in rule.measures()]
    tracker = reading.sparkContext.statusTracker()
    reading.sparkContext.setJobGroup("measured", "")
    table = measuring.measure(reading, LocalPlace(tmp_path, {}), "t.parquet", wanted)
    reading.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    assert table is not None
    assert table.rows == 2
    # One reads the schema from the footers; each stage of the one aggregation is a job of its own.
    assert len(tracker.getJobIdsForGroup("measured")) <= 4
