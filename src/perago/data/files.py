"""The files of a table, found the same way for every engine."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

FORMATS = ("parquet", "csv", "orc", "json")


@dataclass(frozen=True, slots=True)
class Files:
    """What a table consists of; ``problem`` says why it is none."""

    root: Path
    paths: tuple[Path, ...]
    format: str = "parquet"
    problem: str = ""

    @property
    def header(self) -> tuple[str, ...]:
        """Return the column names of a CSV table."""
        return _header(self.paths[0])


def find(workspace: Path, table: str) -> Files | None:
    """Find the files at a path or below it; None when there are none."""
    root = workspace / table
    if root.is_file():
        paths = [root]
    else:
        paths = []
        for folder, names, files in os.walk(root):
            names[:] = [name for name in names if not name.startswith((".", "_"))]
            paths += [Path(folder, name) for name in files if not name.startswith((".", "_"))]
    if not paths:
        return None
    paths.sort()
    kind, problem = kind_of(paths)
    found = Files(root, tuple(paths), kind, problem)
    if found.format == "csv" and not problem:
        return Files(root, found.paths, "csv", _disagreement(found))
    return found


def kind_of(paths: Sequence[PurePath]) -> tuple[str, str]:
    """Tell the format of files by their names, and why they are not those of one table."""
    first = _format(paths[0])
    odd = next((path for path in paths if _format(path) != first), paths[0])
    if first is None or _format(odd) != first:
        return "parquet", f"holds {odd.name!r}, which is no part of a table"
    return first, ""


def is_data(path: PurePath) -> bool:
    """Tell whether readers look at a file; ``path`` is relative to its table."""
    return not any(part.startswith((".", "_")) for part in path.parts)


def _format(path: PurePath) -> str | None:
    return next((s[1:] for s in reversed(path.suffixes) if s[1:] in FORMATS), None)


def _disagreement(files: Files) -> str:
    """Say which file has other columns than the first; one engine goes by name, one by place."""
    for path in files.paths:
        header = _header(path)
        if not header:
            return f"holds {path.name!r}, which has no line with column names"
        if len(set(header)) < len(header):
            return f"holds {path.name!r}, which names a column twice"
        if header != files.header:
            return f"holds {path.name!r}, whose columns are not those of {files.paths[0].name!r}"
    return ""


def _header(path: Path) -> tuple[str, ...]:
    if path.suffix != ".csv":
        import pyarrow as pa  # noqa: PLC0415 - an optional extra, only for compressed files

        with pa.input_stream(path, compression="detect") as stream:
            text = stream.read(1 << 16).decode("utf-8", "replace").splitlines()
        return tuple(next(csv.reader(text), ()))
    with path.open(newline="", encoding="utf-8", errors="replace") as lines:
        return tuple(next(csv.reader(lines), ()))
