"""Compares two versions of a table by schema and rows, with pyarrow; a batch is in memory (X13)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from perago.data.arrow import open_table
from perago.data.files import find
from perago.protocol.table_comparison import TableComparison

_MODULUS = 1 << 256
BATCH = 1 << 14


def compare(before: Path, after: Path, table: str) -> TableComparison:
    """Compare the table at a path below two directories; what cannot be read is not compared."""
    try:
        old, new = open_version(before, table), open_version(after, table)
        if old.schema != new.schema:
            return TableComparison(table, "different")
        (one, had), (two, has) = _sum(old), _sum(new)
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        text = (str(error).splitlines() or [type(error).__name__])[0]
        for root in (before, after):
            text = text.replace(f"{root}/", "")
        return TableComparison(table, "unknown", why=text)
    return TableComparison(table, "rows" if (one, had) == (two, has) else "schema", had, has)


def open_version(root: Path, table: str) -> ds.Dataset:
    """Open the table at a path below a directory; ``ArrowInvalid`` when it is none."""
    files = find(root, table)
    if files is None:
        raise pa.ArrowInvalid("it has no data")
    if files.problem:
        raise pa.ArrowInvalid(f"it {files.problem}")
    return open_table(files)


def _sum(data: ds.Dataset) -> tuple[int, int]:
    """Add up a hash of each row, so that neither order nor files matter; and count the rows."""
    total = rows = 0
    for batch in data.to_batches(batch_size=BATCH):
        rows += batch.num_rows
        columns = [exact_values(column) for column in batch.columns]
        for row in zip(*columns, strict=True):
            text = repr(row).encode("utf-8", "surrogatepass")
            total += int.from_bytes(hashlib.blake2b(text, digest_size=32).digest())
        total %= _MODULUS
    return total, rows


def exact_values(column: pa.Array) -> Sequence[object]:
    """Return values whose ``repr`` tells exactly equal ones from others; NaN equals NaN."""
    kind = column.type
    if pa.types.is_temporal(kind):  # As numbers: Python has neither nanoseconds nor all the years.
        column = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())  # noqa: PLR2004 - bits
    found: Sequence[object] = column.to_pylist()
    return [_plain(value, kind) for value in found] if pa.types.is_nested(kind) else found


def _plain(value: Any, kind: pa.DataType) -> object:
    """Bring a nested value to tuples; the entries of a map have no order."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        pairs = ((_plain(k, kind.key_type), _plain(v, kind.item_type)) for k, v in value)
        return tuple(sorted(pairs, key=repr))
    if pa.types.is_struct(kind):
        return tuple(_plain(value[field.name], field.type) for field in kind)
    if pa.types.is_nested(kind):
        return tuple(_plain(each, kind.value_type) for each in value)
    return value
