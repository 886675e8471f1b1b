"""The files of a table, found the same way for every engine."""

from __future__ import annotations

import csv
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

FORMATS = ("parquet", "csv", "orc", "json")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")
Partition = tuple[tuple[str, str | None], ...]
"""The columns that the directories of a file name, in order, with their values."""


@dataclass(frozen=True, slots=True)
class Files:
    """What a table consists of; ``problem`` says why it is none.

    The root of a table that is one file is the directory of it.
    """

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
        sizes = {root: _size(root)}
    else:
        sizes = {}
        for folder, names, files in os.walk(root):
            names[:] = [name for name in names if not is_hidden(name)]
            paths = [Path(folder, name) for name in files if not is_hidden(name)]
            sizes |= {path: _size(path) for path in paths}
    if not sizes:
        return None
    root = root if root.is_dir() else root.parent
    kind, problem = kind_of({path.relative_to(root): size for path, size in sizes.items()})
    found = Files(root, tuple(sorted(sizes)), kind, problem)
    if found.format == "csv" and not problem:
        return Files(root, found.paths, "csv", _disagreement(found))
    return found


def kind_of(sizes: Mapping[PurePath, int]) -> tuple[str, str]:
    """Tell the format of files by their names, and why they are not those of one table.

    Names are relative to the table. What engines would read differently is refused: Spark skips
    empty files and those beside partitions, without a word.
    """
    paths = sorted(sizes)
    first = _format(paths[0])
    odd = next((path for path in paths if _format(path) != first), paths[0])
    if first is None or _format(odd) != first:
        return "parquet", f"holds {odd.name!r}, which is not part of a table"
    if empty := next((path for path in paths if sizes[path] <= 0), None):
        what = "is not a plain file" if sizes[empty] < 0 else "is empty"
        return first, f"holds {empty.name!r}, which {what}"
    keys = None
    for path in paths:
        found = partition_of(path)
        if found is None:
            what = "which lies in a directory that names no partition ('column=value')"
            return first, f"holds {str(path)!r}, {what}"
        if keys not in (None, names := tuple(name for name, _ in found)):
            return first, f"holds {str(path)!r}, which is in other partitions than the rest"
        keys = names
        if len(set(names)) < len(names):
            return first, f"holds {str(path)!r}, whose directories name a column twice"
    return first, ""


def is_hidden(name: str) -> bool:
    """Return whether readers of tables, Spark above all, leave out a file or directory."""
    marked = name.startswith("_") and "=" not in name
    return marked or name.startswith(".") or name.endswith("._COPYING_")


def is_data(path: PurePath) -> bool:
    """Return whether readers look at a file; ``path`` is relative to its table."""
    return not any(map(is_hidden, path.parts))


def partition_of(path: PurePath) -> Partition | None:
    """Read the directories of a file as Spark does; None when one of them names no partition."""
    found = []
    for part in path.parts[:-1]:
        name, given, value = part.partition("=")
        if not (name and given and value):
            return None
        found.append((_plain(name), None if value == _NO_VALUE else _plain(value)))
    return tuple(found)


def _size(path: Path) -> int:
    """Return the size of a plain file; a link or a device has none."""
    found = path.lstat()
    return found.st_size if stat.S_ISREG(found.st_mode) else -1


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def _format(path: PurePath) -> str | None:
    return next((s[1:] for s in reversed(path.suffixes) if s[1:] in FORMATS), None)


def _disagreement(files: Files) -> str:
    """Return which file has other columns than the first; one engine goes by name, one by place."""
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
