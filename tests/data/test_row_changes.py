"""Z2: which rows were added, removed and changed, against what counting them by hand gives."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perago.data import row_changes as module
from perago.data.row_changes import RowChanges, row_changes
from perago.data.showing import show
from perago.errors import UsageError

Rows = list[tuple[int | None, str | None]]
rows = st.lists(
    st.tuples(st.none() | st.integers(0, 4), st.none() | st.sampled_from(["x", "y"])), max_size=8
)


def compared(old: pa.Table, new: pa.Table, key: str = "", most: int = 3) -> RowChanges:
    with TemporaryDirectory() as scratch:
        for name, table in (("old", old), ("new", new)):
            root = Path(scratch, name)
            root.mkdir()
            pq.write_table(table, root / "t.parquet")
        return row_changes(Path(scratch, "old"), Path(scratch, "new"), "t.parquet", key, most)


def table(found: Rows) -> pa.Table:
    return pa.table(
        {
            "k": pa.array([k for k, _ in found], pa.int64()),
            "v": pa.array([v for _, v in found], pa.string()),
        }
    )


@settings(deadline=None)
@given(rows, rows)
def test_rows_are_counted_as_by_hand(old: Rows, new: Rows) -> None:
    found = compared(table(old), table(new), "k")
    had, has = dict(old), dict(new)
    keyed = all(len(dict(side)) == len(side) and None not in dict(side) for side in (old, new))
    if keyed:
        assert found.key == "k"
        assert found.added == len(has.keys() - had.keys())
        assert found.removed == len(had.keys() - has.keys())
        assert found.changed == sum(has[k] != had[k] for k in had.keys() & has.keys())
    elif found.key is None:
        assert found.added == (Counter(new) - Counter(old)).total()
        assert found.removed == (Counter(old) - Counter(new)).total()
        assert found.changed == 0
    assert (found.before, found.after) == (len(old), len(new))
    assert len(found.added_rows) == min(found.added, 3)
    assert len(found.removed_rows) == min(found.removed, 3)
    assert len(found.changed_rows) == min(found.changed, 3)


def test_samples_show_what_was_and_what_is() -> None:
    found = compared(table([(1, "a"), (2, "b"), (3, None)]), table([(4, "d"), (2, "B"), (1, "a")]))
    assert found.added_rows == (("4", "d"),)
    assert found.removed_rows == (("3", None),)
    assert found.changed_rows == ((("2", "b"), ("2", "B")),)
    assert found.columns == ("k", "v")


def test_the_schema_is_compared_by_names_and_types() -> None:
    old = pa.table({"k": [1], "a": [1], "t": [1]})
    new = pa.table({"k": [1], "b": ["x"], "t": ["1"]})
    found = compared(old, new)
    assert found.added_columns == (("b", "string"),)
    assert found.removed_columns == (("a", "bigint"),)
    assert found.retyped_columns == (("t", "bigint", "string"),)
    assert (found.added, found.removed, found.changed) == (0, 0, 0)


def test_without_a_common_column_rows_are_not_compared() -> None:
    found = compared(pa.table({"a": [1]}), pa.table({"b": [1]}))
    assert found.told.startswith("rows were not compared")


def test_of_large_tables_only_the_columns_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 2)
    found = compared(table([(1, "a")] * 3), table([(1, "b")]))
    assert "more than 2" in found.told
    assert (found.before, found.after, found.added) == (3, 1, 0)


def test_a_key_may_be_far_to_the_right() -> None:
    columns = {f"c{number}": [0, 0] for number in range(60)}
    old = pa.table({**columns, "k": [1, 2]})
    new = pa.table({**columns, "k": [2, 3]})
    found = compared(old, new, "k")
    assert found.key == "k"
    assert found.columns[0] == "k"
    assert len(found.columns) == 30
    assert (found.added, found.removed) == (1, 1)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1.0, float("nan")]),
        pa.array([[1], [2]]),
        pa.array([{"a": 1}, {"a": 2}]),
        pa.array([b"\xff", b""]),
        pa.array([2**62, 1], pa.timestamp("ns")),
        pa.array([2**31 - 1, 0], pa.date32()),
    ],
)
def test_any_type_is_compared(column: pa.Array) -> None:
    both = pa.table({"x": column})
    found = compared(both, both)
    assert (found.added, found.removed, found.changed) == (0, 0, 0)
    found = compared(both, both.slice(0, 1))
    assert found.removed == len(found.removed_rows) == 1


def test_a_table_is_shown_from_its_beginning(tmp_path: Path) -> None:
    pq.write_table(pa.table({f"c{n}": list(range(100)) for n in range(9)}), tmp_path / "t.parquet")
    found = show(tmp_path, "t.parquet", 5, 2)
    assert found.columns == (("c0", "bigint"), ("c1", "bigint"))
    assert (found.count, found.rows) == (9, 100)
    assert found.first == tuple((str(n), str(n)) for n in range(5))


@pytest.mark.parametrize("content", [b"", b"PAR1", b"no table"])
def test_what_is_no_table_is_said_without_its_place(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.parquet").write_bytes(content)
    for read in (
        lambda: show(tmp_path, "t.parquet", 5, 2),
        lambda: row_changes(tmp_path, tmp_path, "t.parquet", "", 3),
    ):
        with pytest.raises(UsageError, match="this table cannot be read") as error:
            read()
        assert str(tmp_path) not in str(error.value)
