"""Odd tables: both engines give the answer that ``docs/howto/guard-a-table.md`` promises (X5, G2).

A case is a table, and for each rule what it says: None when it holds, else a part of the violation.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from perago.data import (
    arrow,
    max_drift,
    require_foreign_key,
    require_not_null,
    require_rows,
    require_schema,
    require_unique,
    require_values,
)
from perago.protocol.data import DataGuard, Table
from perago.spark import measuring
from perago.spark.places import LocalPlace
from tests.spark.conftest import new_session

UNREADABLE = "cannot be read"
NOON = dt.datetime(2026, 1, 1, 12)  # noqa: DTZ001 - as a table without a zone has it
SOON = NOON.replace(microsecond=1)
Answers = Sequence[tuple[DataGuard, str | None]]
Content = Mapping[str, pa.Table | bytes]


@dataclass(frozen=True)
class Case:
    """The files of a table ``t`` (and maybe of others), and what rules say of it."""

    files: Content
    answers: Answers


def holds(table: str, *columns: str) -> tuple[DataGuard, None]:
    return (require_not_null(table, *columns) if columns else require_rows(table)), None


def values(column: str, said: str | None, **limits: Any) -> tuple[DataGuard, str | None]:
    return require_values("t", column, **limits), said


def drift(column: str, said: str | None) -> tuple[DataGuard, str | None]:
    return max_drift("t", mean={column: 0.1}), said


def array(given: Sequence[object], kind: pa.DataType) -> pa.Array:
    return pa.array(given, kind)


def one(**columns: object) -> pa.Table:
    return pa.table({name.replace("__", "."): value for name, value in columns.items()})


DEC = Decimal("100.00000000000000000001")
PRICE = array([Decimal("1.50")], pa.decimal128(10, 2))
SIMPLE = one(a=[1])
FLOATS = one(
    nan=[1.0, math.nan],
    inf=[1.0, math.inf],
    ninf=[1.0, -math.inf],
    both=[math.inf, -math.inf],
    none=array([None, None], pa.float64()),
    huge=[1.7e308, 1.7e308],
    zeros=[0.0, -0.0],
    f32=array([0.1, 0.0], pa.float32()),
)
STRUCT = array([{"x": 1}, {"x": 1}, None], pa.struct([("x", pa.int64())]))
NESTED = one(
    s=STRUCT,
    l=array([[1], [1], None], pa.list_(pa.int64())),
    m=array([[("k", 1)], [("k", 1)], None], pa.map_(pa.string(), pa.int64())),
    b=array([b"\xff", b"\xff", None], pa.binary()),
    n=pa.nulls(3),
)
ODD = one(
    du=array([1], pa.duration("us")),
    fsb=array([b"ab"], pa.binary(2)),
    fsl=array([[1, 2]], pa.list_(pa.int64(), 2)),
    day=array([0], pa.date64()),
    u8=array([255], pa.uint8()),
    u64=array([2**64 - 1], pa.uint64()),
    sv=array(["x"], pa.string_view()),
    ll=array([["x"]], pa.large_list(pa.large_string())),
    sec=array([NOON], pa.timestamp("s")),
    tms=array([0], pa.timestamp("ms", tz="Europe/Berlin")),
    dic=pa.array(["x"]).dictionary_encode(),
)
ODD_TYPES = {
    "du": "bigint", "fsb": "binary", "fsl": "array<bigint>", "day": "date", "u8": "smallint",
    "u64": "decimal(20,0)", "sv": "string", "ll": "array<string>", "sec": "timestamp_ntz",
    "tms": "timestamp", "dic": "string",
}  # fmt: skip
TEXT = one(x=["5\n", "5", "2026-02-30", "2026-01-01T12:00:00.5", "2026-01-01 12:00:00.000"])

CASES: dict[str, Case] = {
    "NaN, infinity, all NULL": Case(
        {"t/a.parquet": FLOATS},
        [
            values("nan", "1 of 2 rows", min=0),
            values("nan", "1 of 2 rows", max=10**400),
            values("inf", None, min=0),
            values("inf", "1 of 2 rows", max=10**400),
            values("ninf", "1 of 2 rows", min=0),
            values("none", None, min=0),
            values("f32", "1 of 2 rows", allowed={0.1, 0}),
            values("zeros", None, allowed={0}),
            (require_not_null("t", "nan"), None),
            (require_not_null("t", "none"), "2 of 2 rows have no 'none'"),
            (require_unique("t", "zeros"), "1 of 2 rows repeat a key"),
            (require_unique("t", "none"), None),
            drift("nan", "went from nan to nan"),
            drift("inf", "went from inf to inf"),
            drift("ninf", "went from -inf to -inf"),
            drift("both", "went from nan to nan"),
            drift("huge", "went from "),
            drift("none", None),
            drift("zeros", None),
        ],
    ),
    "big numbers": Case(
        {
            "t/a.parquet": one(
                i=[2**53 + 1, 2**63 - 1],
                d=array([DEC, DEC - Decimal("2e-20")], pa.decimal128(38, 20)),
                e=array([Decimal("9" * 38)] * 2, pa.decimal128(38, 0)),
                c=array([Decimal("0.10"), Decimal("0.20")], pa.decimal128(8, 2)),
            )
        },
        [
            values("i", "2 of 2 rows", max=2.0**53),
            values("i", None, min=2**53 + 1, max=2**63 - 1),
            values("i", None, max=10**30),
            values("i", "2 of 2 rows", min=10**30),
            values("i", "1 of 2 rows", allowed={2**63 - 1, 2.0**53}),
            values("d", "1 of 2 rows", max=100),
            values("d", "2 of 2 rows", allowed={100}),
            values("c", "1 of 2 rows", max=0.1),
            values("c", None, allowed={0.1, 0.2}),
            (require_unique("t", "d"), None),
            drift("i", None),
            drift("d", None),
            drift("e", "a sum of over 38 digits"),
            (require_schema("t", {"d": "decimal(38, 20)"}, extra=True), None),
        ],
    ),
    "no rows": Case(
        {"t/a.parquet": one(a=array([], pa.int64()), b=array([], pa.string()))},
        [
            (require_rows("t"), "0 rows, at least 1 required"),
            (require_rows("t", 0), None),
            (require_not_null("t", "a"), None),
            (require_unique("t", "a", "b"), None),
            values("a", None, min=5),
            (max_drift("t", rows=0.1, mean={"a": 0.1}), None),
            (require_schema("t", {"a": "bigint", "b": "string"}), None),
        ],
    ),
    "nested columns": Case(
        {"t/a.parquet": NESTED, "o/a.parquet": NESTED},
        [
            (require_not_null("t", "s"), "1 of 3 rows have no 's'"),
            (require_not_null("t", "l", "m"), "1 of 3 rows have no 'l'"),
            (require_not_null("t", "n"), "3 of 3 rows have no 'n'"),
            (require_unique("t", "s"), "'s' is of type struct<x:bigint>, which cannot be a key"),
            (require_unique("t", "l"), "cannot be a key"),
            (require_unique("t", "m"), "cannot be a key"),
            (require_unique("t", "b"), "cannot be a key"),
            (require_foreign_key("t", "b", "o"), "cannot be a key"),
            values("l", "which is not compared with a number", min=0),
            drift("s", "not a number"),
            (
                require_schema(
                    "t",
                    {
                        "s": "struct< x : bigint >",
                        "l": "array<bigint>",
                        "m": "map<string,bigint>",
                        "b": "binary",
                        "n": "int",
                    },
                ),
                None,
            ),
        ],
    ),
    "ways to store": Case(
        {"t/a.parquet": ODD},
        [
            (require_schema("t", ODD_TYPES), None),
            values("u64", "1 of 1 rows", max=2**63 - 1),
            values("u64", None, allowed={2**64 - 1}),
            values("day", None, allowed={dt.date(1970, 1, 1)}),
            values("sec", "1 of 1 rows", min=SOON),
            values("dic", "1 of 1 rows", min="y"),
            (require_unique("t", "u64", "dic", "sec"), None),
            drift("u64", None),
        ],
    ),
    "moments": Case(
        {
            "t/a.parquet": one(
                z=array([NOON], pa.timestamp("us", "UTC")), n=array([NOON], pa.timestamp("us"))
            )
        },
        [
            values("z", "1 of 1 rows", min=SOON.replace(tzinfo=dt.UTC)),
            values("z", None, max=NOON),
            values("z", None, max=NOON.replace(tzinfo=dt.timezone(dt.timedelta(hours=-1)))),
            values("n", "1 of 1 rows", min=SOON),
            values("n", "without a time zone", min=NOON.replace(tzinfo=dt.UTC)),
            values("n", "which is not compared with a date", min=NOON.date()),
            values("z", "which is not compared with a text", min="2026"),
        ],
    ),
    "text and booleans": Case(
        {"t/a.parquet": TEXT.append_column("b", pa.array([True, False, None, True, True]))},
        [
            values("x", "4 of 5 rows", min=0),
            values("x", "5 of 5 rows", min=dt.date(2026, 1, 1)),
            values("x", "4 of 5 rows", min=NOON.replace(microsecond=500_000)),
            values("x", "4 of 5 rows", max=NOON),
            values("x", "without a time zone", max=NOON.replace(tzinfo=dt.UTC)),
            values("b", "1 of 5 rows", allowed={True}),
            drift("b", "boolean, not a number"),
            drift("x", "string, not a number"),
            (require_unique("t", "b"), "2 of 5 rows repeat a key"),
        ],
    ),
    "names of columns": Case(
        {
            "t/a.parquet": pa.table(
                {
                    "a.b": [1, 1],
                    "c`d": ["x", "x"],
                    "times": [1, 1],
                    "count_all": [1, 1],
                    "A": [1, 2],
                }
            )
        },
        [
            (require_unique("t", "a.b"), "1 of 2 rows repeat a key"),
            (require_unique("t", "times"), "1 of 2 rows repeat a key"),
            (require_unique("t", "count_all", "c`d"), "1 of 2 rows repeat a key"),
            values("a.b", "2 of 2 rows", min=5),
            values("c`d", "2 of 2 rows", min="y"),
            values("a", "column 'a' is missing (there is 'A')", min=0),
            (require_schema("t", {"a": "bigint"}, extra=True), "'a' is missing (there is 'A')"),
            drift("a.b", None),
        ],
    ),
    "two names that differ by case": Case(
        {"t/a.parquet": one(a=[1], A=["x"])},
        [holds("t", "a", "A"), values("a", None, min=1), values("A", None, min="a")],
    ),
    "a name twice": Case(
        {"t/a.parquet": pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])},
        [(require_rows("t"), UNREADABLE)],
    ),
    "files with other columns": Case(
        {
            "t/a.parquet": one(
                a=[1], s=array(["x"], pa.large_string()), p=PRICE.cast(pa.decimal128(8, 2))
            ),
            "t/b.parquet": one(a=[2], b=["x"], s=["x"], p=PRICE),
        },
        [
            (require_not_null("t", "b"), "1 of 2 rows have no 'b'"),
            (require_unique("t", "s"), "1 of 2 rows repeat a key"),
            (require_schema("t", {"p": "decimal(10,2)"}, extra=True), None),
            drift("p", None),
        ],
    ),
    "files with other types": Case(
        {"t/a.parquet": one(a=array([1], pa.int32())), "t/b.parquet": SIMPLE},
        [(require_rows("t"), UNREADABLE)],
    ),
    "names of partitions": Case(
        {
            f"t/{name}/j=1/a.parquet": SIMPLE
            for name in (
                *("k=a%2Fb", "k=x y", "k=a=b", "k=100%", "k=a+b", "k=%41", "k=ü"),
                "k=__HIVE_DEFAULT_PARTITION__",
            )
        },
        [
            (require_not_null("t", "k"), "1 of 8 rows have no 'k'"),
            values("k", None, allowed={"a/b", "x y", "a=b", "100%", "a+b", "A", "ü"}),
            values("j", None, min=1),
            (require_schema("t", {"a": "bigint", "k": "string", "j": "string"}), None),
        ],
    ),
    "a partition whose name is escaped": Case(
        {"t/_a%3Db=1/a.parquet": SIMPLE}, [holds("t", "_a=b")]
    ),
    "hidden files": Case(
        {
            "t/a.parquet": SIMPLE,
            "t/_SUCCESS": b"",
            "t/.a.parquet.crc": b"crc",
            "t/_temporary/b.parquet": SIMPLE,
            "t/b.parquet._COPYING_": SIMPLE,
        },
        [(require_rows("t", 1, 1), None)],
    ),
    "keys": Case(
        {
            "t/a.parquet": one(
                whole=[1],
                real=[0.0],
                text=["1"],
                day=[NOON.date()],
                price=PRICE,
                flag=[True],
                zoned=array([NOON], pa.timestamp("us", "UTC")),
                local=array([NOON], pa.timestamp("ms")),
                none=array([None], pa.int64()),
            ),
            "o/a.parquet": one(
                whole=array([1], pa.uint64()),
                real=[-0.0],
                text=["1"],
                day=["2026-01-01"],
                price=PRICE.cast(pa.decimal128(12, 2)),
                flag=["true"],
                many=PRICE.cast(pa.decimal128(12, 4)),
                zoned=array([NOON], pa.timestamp("ms", "UTC")),
                local=array([NOON], pa.timestamp("us")),
            ),
        },
        [
            (
                require_foreign_key(
                    "t", ["whole", "real", "text", "day", "price", "flag", "zoned", "local"], "o"
                ),
                None,
            ),
            (require_foreign_key("t", "none", "o", "whole"), None),
            (require_foreign_key("t", "text", "o", "whole"), None),
            (require_foreign_key("t", "whole", "o", "real"), "bigint and double are not compared"),
            (require_foreign_key("t", "local", "o", "zoned"), "are not compared"),
            (require_foreign_key("t", "price", "o", "many"), "are not compared"),
            (require_foreign_key("t", "text", "o", "absent"), "of 'o', column 'absent' is missing"),
        ],
    ),
    "CSV": Case(
        {"t/a.csv": b'\xef\xbb\xbfa,b,c\r\n"x\ny",1,300\r\n"z""",,5\r\n'},
        [
            (require_rows("t", 2, 2), None),
            (require_not_null("t", "b"), "1 of 2 rows have no 'b'"),
            (require_not_null("t", "a"), None),
            values("a", None, allowed={"x\ny", 'z"'}),
            (require_schema("t", {"c": "tinyint"}, extra=True), "1 values of 'c' are not tinyint"),
            (require_schema("t", {"c": "array<int>"}, extra=True), "cannot hold a value of type"),
            drift("c", "string, not a number"),
        ],
    ),
}
# Tables that one engine, or another reader, would take for something else than the others do.
REFUSED: dict[str, tuple[Content, str]] = {
    "an empty file": ({"t/a.parquet": SIMPLE, "t/b.parquet": b""}, "'b.parquet', which is empty"),
    "files beside partitions": (
        {"t/a.parquet": SIMPLE, "t/k=1/a.parquet": SIMPLE}, "in other partitions than the rest"
    ),
    "other partitions": (
        {"t/j=1/k=1/a.parquet": SIMPLE, "t/k=1/j=1/a.parquet": SIMPLE}, "in other partitions"
    ),
    "other case": ({"t/k=1/a.parquet": SIMPLE, "t/K=1/a.parquet": SIMPLE}, "in other partitions"),
    "a plain directory": (
        {"t/a.parquet": SIMPLE, "t/more/b.parquet": SIMPLE}, "names no partition"
    ),
    "a partition without a value": ({"t/k=/a.parquet": SIMPLE}, "names no partition"),
    "a partition twice": ({"t/k=1/k=2/a.parquet": SIMPLE}, "name a column twice"),
    "a partition that is a column": ({"t/a=1/a.parquet": SIMPLE}, "names partitions, too"),
    "a truncated file": ({"t/a.parquet": b"PAR1 and then the power went"}, UNREADABLE),
    "a CSV file that is not text": ({"t/a.csv": b"a\n\xff\n"}, UNREADABLE),
    "a CSV file with a mark of lost bytes": ({"t/a.csv": "a\nx\ufffd\n".encode()}, "not UTF-8"),
    "a CSV file with an open quote": ({"t/a.csv": b'a,b\n"x,1\n'}, UNREADABLE),
    "a CSV file with a long row": ({"t/a.csv": b"a,b\nx,1,2\n"}, UNREADABLE),
    "JSON cut off": ({"t/a.json": b'{"a": 1}\n{"a":'}, UNREADABLE),
}  # fmt: skip
# What Spark cannot read, it refuses; pyarrow reads more.
FOR_ARROW: dict[str, tuple[Content, Answers]] = {
    "nanoseconds": (
        {
            "t/a.parquet": one(
                n=array([1], pa.timestamp("ns")), z=array([1], pa.timestamp("ns", "UTC"))
            )
        },
        [
            (require_schema("t", {"n": "timestamp_ntz", "z": "timestamp"}), None),
            values("n", "1 of 1 rows", max=dt.datetime(1970, 1, 1)),  # noqa: DTZ001 - as the column
            values("n", None, max=dt.datetime(9999, 1, 1)),  # noqa: DTZ001 - as the column
        ],
    ),
    "wide decimals": (
        {"t/a.parquet": one(d=array([Decimal(1)], pa.decimal256(50, 2)))},
        [values("d", None, min=1), drift("d", None)],
    ),
    "half a float": (
        {"t/a.parquet": one(d=array([1.0], pa.float16()))},
        [(require_rows("t"), None), values("d", "not compared with a number", min=1)],
    ),
    "a column of nothing in one file": (
        {"t/a.parquet": one(a=pa.nulls(1)), "t/b.parquet": SIMPLE},
        [(require_not_null("t", "a"), "1 of 2 rows have no 'a'")],
    ),
}


@pytest.fixture(scope="module")
def reading(jvm: None) -> Iterator[SparkSession]:
    attempt = new_session("agreeing")
    yield measuring.reading_session(attempt.open(), attempt.beside())
    attempt.close()


def _write(root: Path, files: Content) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            pq.write_table(content, path)


def _tables(
    reading: SparkSession, root: Path, rules: Sequence[DataGuard]
) -> Iterator[tuple[str, Table]]:
    wanted = [m for rule in rules for m in (*rule.measures(), *rule.measures(written=True))]
    engines: dict[str, Callable[[], Table | None]] = {
        "pyarrow": lambda: arrow.measure(root, "t", wanted),
        "Spark": lambda: measuring.measure(reading, LocalPlace(root, {}), "t", wanted),
    }
    for name, measure in engines.items():
        table = measure()
        assert table is not None, name
        yield name, table


def _check(table: Table, answers: Answers, where: str) -> None:
    for rule, expected in answers:
        found = rule.verdict(table, table).violation
        assert (found is None) == (expected is None), (where, str(rule), found)
        assert expected is None or expected in (found or ""), (where, str(rule), found)


def test_x5_both_engines_give_the_documented_answer(reading: SparkSession, tmp_path: Path) -> None:
    for number, (name, case) in enumerate(CASES.items()):
        root = tmp_path / str(number)
        _write(root, case.files)
        for engine, table in _tables(reading, root, [rule for rule, _ in case.answers]):
            _check(table, case.answers, f"{name}, {engine}: {table.problem}")


def test_g2_what_readers_would_read_differently_is_refused_by_both(
    reading: SparkSession, tmp_path: Path
) -> None:
    for number, (name, (files, said)) in enumerate(REFUSED.items()):
        _write(tmp_path / str(number), files)
        for engine, table in _tables(reading, tmp_path / str(number), []):
            problem = table.problem
            assert said in problem, (name, engine, problem)
            assert "\n" not in problem
            assert "Traceback" not in problem


def test_x5_what_spark_cannot_read_it_refuses(reading: SparkSession, tmp_path: Path) -> None:
    for number, (name, (files, answers)) in enumerate(FOR_ARROW.items()):
        _write(tmp_path / str(number), files)
        rules = [rule for rule, _ in answers]
        tables = dict(_tables(reading, tmp_path / str(number), rules))
        _check(tables["pyarrow"], answers, name)
        assert UNREADABLE in tables["Spark"].problem, name


def test_x5_int96_is_how_spark_wrote_moments(reading: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    old = one(z=array([0, 1500], pa.timestamp("ns")))
    pq.write_table(old, tmp_path / "t/a.parquet", use_deprecated_int96_timestamps=True)
    answers: Answers = [
        (require_schema("t", {"z": "timestamp"}), None),
        values("z", "1 of 2 rows", max=dt.datetime(1970, 1, 1, tzinfo=dt.UTC)),
    ]
    for engine, table in _tables(reading, tmp_path, [rule for rule, _ in answers]):
        _check(table, answers, engine)


def test_x5_a_table_that_is_a_link_is_none(reading: SparkSession, tmp_path: Path) -> None:
    """What a body links to is not what is published (S3)."""
    _write(tmp_path, {"outside/a.parquet": SIMPLE})
    (tmp_path / "t").mkdir()
    (tmp_path / "t/a.parquet").symlink_to(tmp_path / "outside/a.parquet")
    (tmp_path / "t/b.parquet").symlink_to(tmp_path / "nowhere")
    for engine, table in _tables(reading, tmp_path, []):
        assert "not a plain file" in table.problem, engine


def test_g2_drift_from_what_cannot_be_compared(reading: SparkSession, tmp_path: Path) -> None:
    """The input decides as much as the output: NaN, another type, no column, no table to read."""
    rule = max_drift("t", rows=9, mean={"a": 9})
    befores: dict[str, tuple[Content, str | None]] = {
        "a number": ({"t/a.parquet": one(a=[1.0])}, None),
        "not a number": ({"t/a.parquet": one(a=[math.nan])}, "went from nan to 1"),
        "infinite": ({"t/a.parquet": one(a=[math.inf])}, "went from inf to 1"),
        "nothing": ({"t/a.parquet": one(a=array([None], pa.float64()))}, "went from none to 1"),
        "no rows": ({"t/a.parquet": one(a=array([], pa.float64()))}, "0 rows became 1"),
        "text": ({"t/a.parquet": one(a=["1"])}, "cannot be compared with the input"),
        "no column": ({"t/a.parquet": one(b=[1])}, "cannot be compared with the input"),
        "no table": ({"t/a.parquet": b"?"}, "cannot be compared with the input"),
    }
    _write(tmp_path, {"t/a.parquet": one(a=[1.0])})
    after = dict(_tables(reading, tmp_path, [rule]))
    for number, (name, (files, said)) in enumerate(befores.items()):
        _write(tmp_path / str(number), files)
        for engine, before in _tables(reading, tmp_path / str(number), [rule]):
            found = rule.verdict(after[engine], before).violation
            assert (found is None) == (said is None), (name, engine, found)
            assert said is None or said in (found or ""), (name, engine, found)
    assert rule.verdict(after["Spark"], None).violation is None
