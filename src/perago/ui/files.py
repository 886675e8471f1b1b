"""One file as a page shows it: an image, the beginning of a table or a text, or bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from perago.errors import PeragoError
from perago.protocol.printable import size
from perago.protocol.values import ObjectInfo
from perago.ui.contents import ContentKind, kind_of, table_suffix
from perago.ui.fitting import fitting, table_fitting, weight
from perago.ui.previewing import Found, Previewer
from perago.ui.tables import bring_table, name_of, table_files
from perago.ui.versions import HEAD_BYTES, CommitView

IMAGE_BYTES: Final = 10_000_000
TEXT_WEIGHT: Final = 60_000
_LINE: Final = 60
"""What a line weighs besides its text."""


def file_view(previewer: Previewer, version: CommitView, info: ObjectInfo, wanted: str) -> Found:
    """Have a file looked at; ``kind`` says what it turned out to be."""
    head = version.beginning(info.key)
    kind = chosen(wanted, info.key, head, whole=info.size <= len(head))
    if kind == "image":
        too_large = f"this image has {size(info.size)}: it is not shown"
        return {"kind": kind} | ({"problem": too_large} if info.size > IMAGE_BYTES else {})
    if kind == "table":
        return table_view(previewer, version, info.key)
    return {"kind": kind, **_head_view(previewer, info, head, kind)}


def chosen(wanted: str, key: str, head: bytes, *, whole: bool) -> ContentKind:
    """Take what was asked for where a file can be that, else what it looks like. Pure."""
    likely = kind_of(key, head, whole=whole)
    if wanted == "table" and table_suffix(key):
        return "table"
    return "text" if wanted == "text" else "hex" if wanted == "hex" else likely


def shapes_of(key: str, shown: str) -> list[str]:
    """List as what else a file can be shown. Pure."""
    shapes = [*(["table"] if table_suffix(key) else []), "text", "hex"]
    return [shape for shape in shapes if shape != shown]


def table_view(previewer: Previewer, version: CommitView, path: str) -> Found:
    """Have a table looked at; one of a directory whose path ends in a slash."""
    try:
        files = table_files(previewer, version, path)
    except PeragoError as error:
        return {"kind": "table", "problem": error.message}

    def prepare(scratch: Path) -> dict[str, object]:
        root = scratch / "files"
        table = bring_table(version, path, files, root)
        return {"what": "table", "root": str(root), "table": table}

    found = previewer.find(("table", path, name_of(files)), prepare)
    return {"kind": "table", **(found if "problem" in found else fitted_table(found))}


def fitted_table(found: Found) -> dict[str, Any]:
    """Leave out of a table what a page has no space for. Pure."""
    columns = fitting(found["columns"], lambda c: 2 * (weight(c[0]) + 40) + weight(c[1]), 30_000)
    rows = [row[: len(columns)] for row in found["first"]]
    shown = table_fitting([name for name, _ in columns], rows, TEXT_WEIGHT)
    return {
        "columns": columns,
        "count": found["count"],
        "rows": found["rows"],
        "first": shown,
    }


def _head_view(previewer: Previewer, info: ObjectInfo, head: bytes, kind: str) -> dict[str, Any]:
    whole = info.size <= len(head)

    def prepare(scratch: Path) -> dict[str, object]:
        path = scratch / "head"
        path.write_bytes(head)
        return {"what": kind, "file": str(path), "whole": whole}

    found = previewer.find((kind, info.checksum, info.size, info.key), prepare)
    if "problem" in found:
        return dict(found)
    lines = fitting(found["lines"], lambda line: weight(line) + _LINE, TEXT_WEIGHT)
    cut = not whole or len(lines) < len(found["lines"])
    kind = "hex" if "binary" in found else kind
    return {"kind": kind, "lines": lines, "cut": cut or info.size > HEAD_BYTES}
