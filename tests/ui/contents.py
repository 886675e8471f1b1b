"""Files that a workspace may hold, and pages must bear."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR and more"
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
HTML = b"<!doctype html><script>alert('run')</script>"
NAMES = (
    "<script>alert(1)</script>",
    "\"quoted' & <b>",
    "line\nend\r\tand tab",
    "evil\u202etxt.exe",
    "..",
    "../../etc/passwd",
    "a/../b",
    "percent%2Fslash",
    "percent%",
    "plus+and space ?#&=;",
    "/leading",
    "double//slash",
    "\\back\\slash",
    "\x00nul",
    "\x1b[2Jescape",
    "{{ 7 * 7 }}{% raw %}",
    "été/中文/\U0001f600",
    "n" * 1000,
    "/" * 1000,
    "\u202e" * 339,
    "'" * 1000,
)


def parquet(table: dict[str, Any] | pa.Table, **options: Any) -> bytes:
    """Write a Parquet file."""
    file = io.BytesIO()
    pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), file, **options)
    return file.getvalue()


def dense(megabytes: int) -> bytes:
    """Write a small Parquet file that is a large one once it is unpacked."""
    column = pa.array([b"\0" * 1_000_000]).take(pa.array([0] * megabytes))
    found = parquet(
        pa.table({"x": column}),
        compression="zstd",
        use_dictionary=False,
        data_page_size=1 << 30,
        write_statistics=False,
    )
    assert len(found) < 1_000_000
    return found
