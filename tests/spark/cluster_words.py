"""A module of the author's that no executor has: plain Python, for a function that runs there."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

_BLANK = "unknown"


def tidy(name: str | None) -> str:
    """Write a name the way the other table does."""
    return " ".join((name or _BLANK).split()).lower()


def charged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add what a long trip costs more."""
    for batch in batches:
        extra = [_surcharge(km) for km in batch.column("km").to_pylist()]
        yield batch.append_column("extra", pa.array(extra, pa.float64()))


def _surcharge(kilometres: float) -> float:
    return 2.5 if kilometres > 10 else 0.0
