"""Reads a whole table with pyarrow: for people who look at results."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from perago.data.files import find
from perago.errors import UsageError


def read(root: Path, path: str) -> pa.Table:
    """Read the file at a path, or the files below it; directories ``key=value`` become columns."""
    files = find(root, path)
    if files is None:
        raise UsageError(f"{path!r} has no data", remedy="name a table: a file or a directory")
    if files.problem:
        raise UsageError(
            f"{path!r} is not a table: {files.problem}", remedy="name one of its parts"
        )
    try:
        return ds.dataset(
            [str(found) for found in files.paths],
            format=files.format,
            partitioning="hive",
            partition_base_dir=str(files.root),
        ).to_table()
    except (pa.ArrowException, OSError) as error:
        text = str(error).splitlines()[0].replace(f"{root}/", "")
        raise UsageError(
            f"{path!r} cannot be read: {text}", remedy="read its bytes from .files"
        ) from None
