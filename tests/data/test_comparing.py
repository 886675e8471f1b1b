"""Two versions of a table compared by schema and rows (X13)."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perago.data.comparing import compare
from perago.protocol.table_comparison import TableComparison

Rows = list[dict[str, object]]
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("real", pa.float64()),
        ("price", pa.decimal128(10, 2)),
        ("text", pa.string()),
        ("raw", pa.binary()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("list", pa.list_(pa.float64())),
        ("map", pa.map_(pa.string(), pa.int64())),
        ("deep", pa.struct([("a", pa.list_(pa.struct([("b", pa.string())])))])),
    ]
)
reals = st.floats() | st.none()
rows_of: st.SearchStrategy[Rows] = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.integers(0, 2) | st.none(),
            "real": st.sampled_from([0.0, -0.0, 1.5, math.nan, math.inf, None]),
            "price": st.sampled_from([Decimal("1.10"), Decimal("0.00"), None]),
            "text": st.sampled_from(["", "None", "a', 'b", "\ud7ff\x00", None]),
            "raw": st.sampled_from([b"", b"\xff", None]),
            "day": st.sampled_from([dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
            "at": st.sampled_from([dt.datetime(2026, 1, 1, tzinfo=dt.UTC), None]),
            "list": st.lists(reals, max_size=2) | st.none(),
            "map": st.dictionaries(st.sampled_from("ab"), st.integers(0, 1)).map(
                lambda found: list(found.items())
            ),
            "deep": st.sampled_from([{"a": [{"b": "x"}]}, {"a": [{"b": None}]}, {"a": []}, None]),
        }
    ),
    min_size=1,
    max_size=5,
)


def write(root: Path, rows: Rows, schema: pa.Schema = SCHEMA, files: int = 1) -> Path:
    """Write rows in so many files of a table."""
    (root / "t").mkdir(parents=True)
    for number in range(files):
        table = pa.Table.from_pylist(rows[number::files], schema)
        pq.write_table(table, root / "t" / f"part-{number}.parquet")
    return root


def alike(one: Path, two: Path) -> str:
    return compare(one, two, "t").alike


def key(row: dict[str, object]) -> str:
    """Tell rows apart without the code under test."""
    entries: Any = row["map"]
    return repr({**row, "map": sorted(entries)})


@settings(max_examples=60, deadline=None)
@given(rows_of, st.randoms(use_true_random=False), st.integers(1, 3))
def test_order_and_files_do_not_count(
    tmp_path_factory: pytest.TempPathFactory, rows: Rows, random: Any, files: int
) -> None:
    root = tmp_path_factory.mktemp("t")
    mixed = [*rows]
    random.shuffle(mixed)
    found = compare(write(root / "a", rows), write(root / "b", mixed, files=files), "t")
    assert found == TableComparison("t", "rows", len(rows), len(rows))


@settings(max_examples=60, deadline=None)
@given(rows_of, rows_of)
def test_every_other_row_counts(
    tmp_path_factory: pytest.TempPathFactory, one: Rows, two: Rows
) -> None:
    root = tmp_path_factory.mktemp("t")
    same = sorted(map(key, one)) == sorted(map(key, two))
    assert alike(write(root / "a", one), write(root / "b", two)) == ("rows" if same else "schema")


ROWS: Rows = [{"id": 1, "v": "x"}, {"id": 1, "v": "x"}, {"id": 2, "v": None}]
PLAIN = pa.schema([("id", pa.int64()), ("v", pa.string())])


@pytest.mark.parametrize(
    ("rows", "schema", "expected"),
    [
        (ROWS[::-1], PLAIN, "rows"),
        (ROWS[1:], PLAIN, "schema"),
        ([ROWS[0], ROWS[2], ROWS[2]], PLAIN, "schema"),
        (ROWS, pa.schema([("v", pa.string()), ("id", pa.int64())]), "different"),
        (ROWS, pa.schema([("id", pa.int32()), ("v", pa.string())]), "different"),
        (ROWS, pa.schema([("id", pa.int64()), ("V", pa.string())]), "different"),
        (ROWS, PLAIN.append(pa.field("more", pa.string())), "different"),
    ],
)
def test_what_is_the_same_table(
    tmp_path: Path, rows: Rows, schema: pa.Schema, expected: str
) -> None:
    assert (
        alike(write(tmp_path / "a", ROWS, PLAIN), write(tmp_path / "b", rows, schema)) == expected
    )


def test_a_row_in_another_partition_is_another_row(tmp_path: Path) -> None:
    for side, folders in (("a", ("k=1", "k=2")), ("b", ("k=1", "k=1"))):
        for number, folder in enumerate(folders):
            place = tmp_path / side / "t" / folder
            place.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table({"v": [number]}), place / f"part-{number}.parquet")
    assert alike(tmp_path / "a", tmp_path / "b") == "schema"


def test_nanoseconds_and_distant_years_are_compared(tmp_path: Path) -> None:
    for unit, value in (("ns", 1), ("us", 1 << 60)):
        schema = pa.schema([("at", pa.timestamp(unit))])
        sides = [tmp_path / unit / side for side in "abc"]
        for side, number in zip(sides, (value, value, value + 1), strict=True):
            (side / "t").mkdir(parents=True)
            table = pa.table([pa.array([number], pa.int64()).view(pa.timestamp(unit))], schema)
            pq.write_table(table, side / "t" / "x.parquet")
        assert alike(sides[0], sides[1]) == "rows"
        assert alike(sides[0], sides[2]) == "schema"


@pytest.mark.parametrize(
    "content", [{"x.parquet": b"no"}, {"x.json": b"{}"}, {"x.jpg": b"x"}, {"x.csv": b""}, {}]
)
def test_what_cannot_be_read_is_not_compared(tmp_path: Path, content: dict[str, bytes]) -> None:
    for side in "ab":
        (tmp_path / side / "t").mkdir(parents=True)
        for name, data in content.items():
            (tmp_path / side / "t" / name).write_bytes(data)
    found = compare(tmp_path / "a", tmp_path / "b", "t")
    assert found.alike == "unknown"
    assert found.why
    assert str(tmp_path) not in str(found)
