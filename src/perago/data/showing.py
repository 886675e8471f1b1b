"""The first look at a table: its columns, how many rows it has, and the first of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from perago.data.arrow import shown_value
from perago.data.comparing import open_version
from perago.data.types import type_name
from perago.errors import UsageError

Cells = tuple[str | None, ...]
"""The values of a row as text; None where there is none."""
_LONGEST_VALUE = 80
_LONGEST_TYPE = 200


@dataclass(frozen=True, slots=True)
class TableView:
    """What a person sees of a table first."""

    columns: tuple[tuple[str, str], ...]
    """Names and types."""
    count: int
    """How many columns there are; not all of them are shown."""
    rows: int
    first: tuple[Cells, ...]


def show(root: Path, table: str, most_rows: int, most_columns: int) -> TableView:
    """Read as little of a table as it takes; ``UsageError`` says why that is not possible."""
    try:
        data = open_version(root, table)
        names = data.schema.names[:most_columns]
        first = data.head(
            most_rows,
            columns=names,
            batch_size=most_rows,
            batch_readahead=1,
            fragment_readahead=1,
            use_threads=False,
        )
        rows = data.count_rows(use_threads=False)
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise unreadable(error, root) from None
    return TableView(columns_of(data.schema, names), len(data.schema), rows, tuple(cells(first)))


def use_one_thread() -> None:
    """Let Arrow do one thing at a time: each thread of it takes memory of its own."""
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


def unreadable(error: Exception, *roots: Path) -> UsageError:
    """Say in one line why a table cannot be read; where it was put does not matter."""
    if isinstance(error, MemoryError):  # Arrow's is one of these, too.
        raise error
    text = (str(error).splitlines() or [type(error).__name__])[0]
    for root in roots:
        text = text.replace(f"{root}/", "")
    return UsageError(f"this table cannot be read: {text}", remedy="look at its bytes")


def columns_of(schema: pa.Schema, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return names and types."""
    return tuple((name, type_name(schema.field(name).type)[:_LONGEST_TYPE]) for name in names)


def cells(rows: pa.Table | pa.RecordBatch) -> list[Cells]:
    """Write the values of a few rows as text."""
    columns = [
        [shown_value(value, _LONGEST_VALUE) if value.is_valid else None for value in column]
        for column in rows.columns
    ]
    return list(zip(*columns, strict=True)) if columns else []


def count(data: ds.Dataset) -> int:
    """Count rows; a Parquet file says it without being read."""
    found: int = data.count_rows(use_threads=False)
    return found
