"""What a worker gives back to Spark: rows as Arrow batches, with the columns they have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Columns = Mapping[str, str]
"""Names and types, as Spark's SQL spells them."""


def batch(rows: Iterable[Mapping[str, object]], columns: Columns) -> Any:
    """Make one batch."""
    import pyarrow as pa  # noqa: PLC0415 - only workers need it

    kinds = {"STRING": pa.string(), "BOOLEAN": pa.bool_(), "LONG": pa.int64()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in columns.items()])
    return pa.RecordBatch.from_pylist(list(rows), schema)


def ddl(columns: Columns) -> str:
    """Write columns down for Spark."""
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())
