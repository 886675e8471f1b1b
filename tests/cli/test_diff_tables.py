"""``perago diff`` says what became of tables whose files differ (X13)."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from perago.app.local import Home
from tests.cli.conftest import Perago

U1, U2, U3 = (f"01234567-89ab-4cde-8f01-{number:012}" for number in range(3))


def part(uuid: str, number: int = 0) -> str:
    return f"part-{number:05}-{uuid}-c000.snappy.parquet"


def content(*ids: int, kind: pa.DataType | None = None) -> bytes:
    found = io.BytesIO()
    pq.write_table(pa.table({"id": pa.array(ids, kind or pa.int64())}), found)
    return found.getvalue()


@pytest.fixture
def commits(project: Path) -> tuple[str, str]:
    """Give two commits with a table for each way in which versions can be alike."""
    before = {
        f"names/k=1/{part(U1)}": content(1, 2),
        f"rows/{part(U1)}": content(1, 2, 3),
        f"other/{part(U1)}": content(1, 2),
        f"types/{part(U1)}": content(1),
        f"broken/{part(U1)}": b"no",
        f"log/{part(U1)}": content(1),
        f"kept/{part(U1)}": content(1),
    }
    after = {
        f"names/k=1/{part(U2)}": content(1, 2),
        f"rows/{part(U2)}": content(3),
        f"rows/{part(U2, 1)}": content(2, 1),
        f"other/{part(U2)}": content(1, 2, 2),
        f"types/{part(U2)}": content(1, kind=pa.int32()),
        f"broken/{part(U2)}": b"not",
        f"log/{part(U2)}": content(2),
        "log/_delta_log/1.json": b"{}",
        f"new/{part(U3)}": content(1),
    }
    home = Home(project / ".perago", project / "rooms")
    store = home.store
    store.create_repository("lake", "main")
    for key, data in before.items():
        store.put("lake", "main", key, data)
    old = store.commit_branch("lake", "main", "before").id
    for key in before:
        if not key.startswith("kept/"):
            store.remove("lake", "main", key)
    for key, data in after.items():
        store.put("lake", "main", key, data)
    new = store.commit_branch("lake", "main", "after").id
    home.close()
    return old, new


def test_names_are_told_without_a_look_into_files(perago: Perago, commits: tuple[str, str]) -> None:
    told = perago("diff", *commits)
    assert told.code == 0, told.err
    assert [line for line in told.out.splitlines() if line.startswith("=")] == [
        "= names: only the names of files differ"
    ]


def test_rows_are_compared_when_asked_for(perago: Perago, commits: tuple[str, str]) -> None:
    told = perago("diff", *commits, "--rows")
    assert told.code == 0, told.err
    lines = [line for line in told.out.splitlines() if line.startswith("=")]
    assert lines[0].startswith("= broken: not compared: ")
    assert lines[1:] == [
        "= names: only the names of files differ",
        "= other: the same schema, other rows (2 before, 3 after)",
        "= rows: the same schema and the same rows (3), in other files",
        "= types: another schema",
    ]
    tables = perago("diff", *commits, "--rows", "--json").json["tables"]
    assert [(table["table"], table["alike"], table["rows"]) for table in tables[1:]] == [
        ("names", "names", None),
        ("other", "schema", [2, 3]),
        ("rows", "rows", [3, 3]),
        ("types", "different", None),
    ]


def test_big_tables_are_left_out(perago: Perago, commits: tuple[str, str]) -> None:
    tables = perago("diff", *commits, "--rows", "--most-mb", "0", "--json").json["tables"]
    assert {table["alike"] for table in tables} == {"names", "unknown"}
    assert "more than 0 B" in tables[0]["why"]
