"""Parquet files of two JVMs are made the same bytes, and mean what they meant (X13)."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perago.spark.footers import MAGIC, _Reader, settle, settled

TABLE = pa.table(
    {
        "id": list(range(100)),
        "text": ["x" * (n % 7) for n in range(100)],
        "flag": [n % 2 == 0 for n in range(100)],
        "real": [n / 3 for n in range(100)],
        "list": [[n, None] for n in range(100)],
        "map": pa.array([[("a", n)] for n in range(100)], pa.map_(pa.string(), pa.int64())),
    }
)


def parquet(table: pa.Table = TABLE, **options: object) -> bytes:
    found = io.BytesIO()
    pq.write_table(table, found, **options)
    return found.getvalue()


def footer_of(data: bytes) -> bytes:
    length = int.from_bytes(data[-8:-4], "little")
    return data[-8 - length : -8]


def mixed(footer: bytes) -> bytes:
    """Turn every list of encodings round, as another JVM might."""
    new = bytearray(footer)
    for first, last in _Reader(footer).encodings():
        new[first:last] = footer[first:last][::-1]
    return bytes(new)


def with_footer(data: bytes, footer: bytes) -> bytes:
    return data[: -8 - len(footer)] + footer + data[-8:]


def told(metadata: pq.FileMetaData) -> dict[str, Any]:
    """Return all that a footer says, the encodings in order."""
    found: dict[str, Any] = metadata.to_dict()
    for group in found["row_groups"]:
        for column in group["columns"]:
            column["encodings"] = sorted(column["encodings"])
    return found


FILES = {
    "one": parquet(),
    "groups": parquet(row_group_size=10, compression="zstd", use_dictionary=False),
    "wide": parquet(pa.table({f"c{n}": [n] for n in range(40)})),
    "empty": parquet(TABLE.slice(0, 0)),
    "indexed": parquet(write_page_index=True, write_page_checksum=True, data_page_version="2.0"),
}


@pytest.mark.parametrize("name", FILES)
def test_the_order_of_encodings_no_longer_tells(tmp_path: Path, name: str) -> None:
    data = FILES[name]
    footer = footer_of(data)
    other = mixed(footer)
    assert settled(footer) == settled(other) == settled(settled(footer))
    file = tmp_path / "x"
    file.write_bytes(with_footer(data, other))
    before = pq.ParquetFile(file).metadata
    with file.open("r+b") as opened:
        settle(opened.fileno())
        assert not settle(opened.fileno())
    assert file.read_bytes() == with_footer(data, settled(footer))
    assert pq.read_table(file).equals(pq.read_table(io.BytesIO(data)))
    after = pq.ParquetFile(file).metadata
    assert told(after) == told(before)


def test_there_is_something_to_sort_at_all() -> None:
    assert any(mixed(footer_of(data)) != footer_of(data) for data in FILES.values())


@settings(max_examples=300)
@given(st.binary() | st.integers(0, 400).map(lambda cut: footer_of(FILES["one"])[:cut]))
def test_what_is_no_footer_stays(data: bytes) -> None:
    assert sorted(settled(data)) == sorted(data)


@settings(max_examples=300)
@given(st.integers(0, len(footer_of(FILES["one"])) - 1), st.integers(0, 255))
def test_a_broken_footer_is_no_trouble(place: int, value: int) -> None:
    footer = bytearray(footer_of(FILES["one"]))
    footer[place] = value
    assert sorted(settled(bytes(footer))) == sorted(footer)


@pytest.mark.parametrize(
    "data", [b"", b"x", MAGIC, MAGIC * 2, b"\xff" * 20 + MAGIC, MAGIC + b"\0" * 4 + MAGIC]
)
def test_what_is_not_parquet_stays(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "x"
    file.write_bytes(data)
    with file.open("r+b") as opened:
        assert not settle(opened.fileno())
    assert file.read_bytes() == data


def test_a_file_with_another_name_stays(tmp_path: Path) -> None:
    file = tmp_path / "x"
    data = with_footer(FILES["one"], mixed(settled(footer_of(FILES["one"]))))
    file.write_bytes(data)
    os.link(file, tmp_path / "y")
    with file.open("r+b") as opened:
        assert not settle(opened.fileno())
    assert file.read_bytes() == data
