"""Z5: a page has its size whatever is shown on it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from perago.protocol.values import ChangeSet
from perago.ui.compare import fitted_rows, ordered, table_directories
from perago.ui.files import chosen, fitted_table, shapes_of
from perago.ui.fitting import cut, fitting, table_fitting, weight
from perago.ui.rendering import render


@settings(deadline=None)
@given(st.text(max_size=50))
def test_a_text_takes_as_much_as_was_counted(text: str) -> None:
    shown = render("refused.html", why=text)
    empty = render("refused.html", why="")
    assert len(shown.encode()) - len(empty.encode()) <= weight(text)


def test_what_weighs_most() -> None:
    assert weight("a") == 1
    assert weight('"') == len("&#34;")
    assert weight("\u202e") == len("\\u202e")
    assert weight("é") == 2


def test_items_are_taken_from_the_beginning() -> None:
    assert fitting(["a", "bb", "c"], len, 3) == ["a", "bb"]
    assert fitting(["aaaa", "b"], len, 3) == []
    assert fitting([], len, 0) == []


def test_a_cut_text_shows_that_it_was() -> None:
    assert cut("abc", 3) == "abc"
    assert cut("abcd", 3) == "ab…"


def test_a_table_pays_for_its_columns_first() -> None:
    rows: list[list[str | None]] = [["x"], ["y"], [None]]
    assert table_fitting(["c"], rows, 1000) == rows
    assert len(table_fitting(["c"], rows, 41 + 41)) == 1
    assert table_fitting(["c" * 1000], rows, 100) == []


def test_columns_without_space_take_their_cells_along() -> None:
    columns = [(f"{number}" * 200, "string") for number in range(100, 200)]
    found = {"columns": columns, "count": 100, "rows": 1, "first": [["v"] * 100]}
    view = fitted_table(found)
    assert 0 < len(view["columns"]) < 100
    assert [len(row) for row in view["first"]] == [len(view["columns"])]
    assert view["count"] == 100


def test_a_comparison_keeps_its_counts() -> None:
    found = {
        "added_columns": [["n" * 500, "int"]] * 50,
        "removed_columns": [],
        "retyped_columns": [["n", "int", "string"]],
        "columns": ["k" * 100] * 60,
        "candidates": ["k" * 1000] * 10,
        "added_rows": [["v" * 80] * 60] * 10,
        "removed_rows": [],
        "changed_rows": [[["v" * 80] * 60, ["w" * 80] * 60]] * 10,
        "added": 10,
    }
    view = fitted_rows(found)
    assert view["added_columns_count"] == 50
    assert len(view["added_columns"]) < 50
    assert view["added"] == 10
    wide = len(view["columns"])
    assert wide < 60
    assert all(len(row) == wide for pair in view["changed_rows"] for row in pair)
    assert len(str(view)) < 80_000


def test_changes_are_listed_by_key() -> None:
    found = ChangeSet(added=("b",), changed=("c", "d"), removed=("a",))
    assert ordered(found) == [
        ("removed", "a"),
        ("added", "b"),
        ("changed", "c"),
        ("changed", "d"),
    ]


def test_tables_are_named_by_what_changed_in_them() -> None:
    part = "part-00000-00000000-0000-4000-8000-000000000000-c000.snappy.parquet"
    found = ChangeSet(
        added=(f"orders/day=1/{part}", "delta/_delta_log/00000000000000000001.json", part, "x.csv")
    )
    assert table_directories(found) == ["delta/", "orders/"]


def test_a_file_is_shown_as_what_was_asked_for_where_it_can_be_that() -> None:
    assert chosen("", "a.csv", b"x", whole=True) == "table"
    assert chosen("text", "a.csv", b"x", whole=True) == "text"
    assert chosen("hex", "a.txt", b"x", whole=True) == "hex"
    assert chosen("table", "a.txt", b"x", whole=True) == "text"
    assert chosen("<script>", "a.txt", b"x", whole=True) == "text"
    assert shapes_of("a.csv", "table") == ["text", "hex"]
    assert shapes_of("a.png", "image") == ["text", "hex"]
