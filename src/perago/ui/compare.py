"""Two versions compared: which files differ, and how one of them does."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from perago.errors import NotFoundError, PeragoError
from perago.protocol.delta_log import LOG
from perago.protocol.parts import tables_of
from perago.protocol.printable import brief, size
from perago.protocol.values import ChangeSet, ObjectInfo
from perago.ui.contents import ContentKind, kind_of
from perago.ui.files import IMAGE_BYTES, TEXT_WEIGHT
from perago.ui.fitting import fitting, table_fitting, weight
from perago.ui.previewing import Found, Previewer
from perago.ui.responses import html
from perago.ui.tables import bring_table, name_of, table_files
from perago.ui.versions import CommitView, parts_of, version_of

MOST_CHANGES: Final = 200
TEXT_BYTES: Final = 1_000_000
_ROW: Final = 200
_SCHEMA_WEIGHT, _SAMPLE_WEIGHT = 4_000, 15_000
_SIDES: Final = 2
_FIRST: Final = 3
"""Before the two versions stand the page, the store and the repository."""


def compare(request: Request) -> Response:
    """Show what differs between two versions, or how one file does."""
    names = parts_of(request.scope.get("raw_path") or request.url.path.encode())[_FIRST:]
    if len(names) != _SIDES:
        raise NotFoundError("the address of a comparison names two versions")
    old, new = (version_of(request, name) for name in names)
    path = request.query_params.get("path", "")
    if path:
        return _file(request, old, new, path)
    after = request.query_params.get("after", "")
    found = old.place.diff_page(
        old.repository, old.commit.id, new.commit.id, "", after, MOST_CHANGES
    )
    lines = ordered(found)
    shown = fitting(lines, lambda line: _ROW + 3 * len(line[1].encode()) + weight(line[1]), 60_000)
    shown = shown or lines[:1]
    more = len(shown) < len(lines) or len(lines) == MOST_CHANGES
    return html(
        request,
        "compare.html",
        title=f"{old.name} and {new.name}",
        old=old,
        new=new,
        at="",
        listed=shown,
        tables=fitting(table_directories(found), lambda table: 2 * weight(table) + _ROW, 10_000),
        first=not after,
        following=shown[-1][1] if more and shown else "",
        view=None,
    )


def ordered(found: ChangeSet) -> list[tuple[str, str]]:
    """List changes by key, each with its kind. Pure."""
    kinds = {"added": found.added, "changed": found.changed, "removed": found.removed}
    return sorted(
        ((kind, key) for kind, keys in kinds.items() for key in keys), key=lambda line: line[1]
    )


def table_directories(found: ChangeSet) -> list[str]:
    """Name the directories that are tables, by the files that changed in them. Pure."""
    keys = (*found.added, *found.changed, *found.removed)
    logged = {key.partition(f"/{LOG}")[0] for key in keys if f"/{LOG}" in key}
    return sorted(f"{table}/" for table in {*tables_of(found), *logged} if table)


def _file(request: Request, old: CommitView, new: CommitView, path: str) -> Response:
    infos = None if path.endswith("/") else (old.find(path), new.find(path))
    if infos == (None, None):
        raise NotFoundError(f"there is nothing at {brief(path)!r} in either version")
    previewer = request.app.state.previewer
    if infos is None:
        view = _tables(previewer, (old, new), path, request.query_params.get("key", ""))
    else:
        key = request.query_params.get("key", "")
        view = _view(previewer, (old, new), infos, key)
    return html(
        request,
        "compare.html",
        title=f"{brief(path)}: {old.name} and {new.name}",
        old=old,
        new=new,
        at=path,
        listed=None,
        tables=(),
        first=True,
        following="",
        view=view | {"infos": infos},
    )


def _view(
    previewer: Previewer,
    versions: tuple[CommitView, CommitView],
    infos: tuple[ObjectInfo | None, ObjectInfo | None],
    key: str,
) -> dict[str, Any]:
    there = [(version, info) for version, info in zip(versions, infos, strict=True) if info]
    if len(there) == _SIDES and there[0][1].entry == there[1][1].entry:
        return {"kind": "same"}
    kinds = set()
    for version, info in there:
        head = version.beginning(info.key)
        kinds.add(kind_of(info.key, head, whole=info.size <= len(head)))
    match common_kind(kinds):
        case "table" if len(there) == _SIDES:
            return _tables(previewer, versions, there[0][1].key, key)
        case "image":
            large = any(info.size > IMAGE_BYTES for _, info in there)
            return {"kind": "image"} | ({"problem": "an image is too large"} if large else {})
        case "text" | "table":
            return {"kind": "text", **_beside(previewer, versions, infos)}
        case _:
            return {"kind": "bytes"}


def common_kind(kinds: set[ContentKind]) -> ContentKind:
    """Return how two contents are compared; as bytes where they have nothing in common. Pure."""
    return kinds.pop() if len(kinds) == 1 else "hex"


def _beside(
    previewer: Previewer,
    versions: tuple[CommitView, CommitView],
    infos: tuple[ObjectInfo | None, ObjectInfo | None],
) -> dict[str, Any]:
    sizes = [info.size for info in infos if info]
    if max(sizes) > TEXT_BYTES:
        return {"problem": f"a text of {size(max(sizes))} is too long to be compared on a page"}

    def prepare(scratch: Path) -> dict[str, object]:
        paths = [
            str(version.bring(info, scratch / f"{number}")) if info else None
            for number, (version, info) in enumerate(zip(versions, infos, strict=True))
        ]
        return {"what": "beside", "before": paths[0], "after": paths[1], "whole": True}

    name = ("beside", tuple((info.checksum, info.size) if info else None for info in infos))
    found = previewer.find(name, prepare)
    if "problem" in found:
        return dict(found)
    rows = fitting(
        found["beside"], lambda row: weight(row["old"]) + weight(row["new"]) + 120, TEXT_WEIGHT
    )
    return {"beside": rows, "cut": len(rows) < len(found["beside"])}


def _tables(
    previewer: Previewer, versions: tuple[CommitView, CommitView], path: str, key: str
) -> dict[str, Any]:
    """Have two versions of a table compared by their rows."""
    try:
        files = [table_files(previewer, version, path) for version in versions]
    except PeragoError as error:
        return {"kind": "table", "problem": error.message}

    def prepare(scratch: Path) -> dict[str, object]:
        roots = [scratch / "before", scratch / "after"]
        tables = {
            bring_table(version, path, listed, root)
            for version, listed, root in zip(versions, files, roots, strict=True)
        }
        before, after = map(str, roots)
        told = {"before": before, "after": after, "table": tables.pop(), "key": key}
        return {"what": "rows", **told}

    found = previewer.find(("rows", path, key, *map(name_of, files)), prepare)
    return {"kind": "table", **(found if "problem" in found else fitted_rows(found))}


def fitted_rows(found: Found) -> dict[str, Any]:
    """Leave out of a comparison what a page has no space for. Pure."""
    kept = dict(found)
    for name in ("added_columns", "removed_columns", "retyped_columns"):
        kept[name] = fitting(
            found[name],
            lambda column: sum(weight(part) + 60 for part in column),
            _SCHEMA_WEIGHT,
        )
        kept[f"{name}_count"] = len(found[name])
    kept["candidates"] = fitting(found["candidates"], lambda name: 2 * weight(name) + 60, 6_000)
    columns = fitting(found["columns"], lambda name: 3 * (weight(name) + 40), 9_000)
    kept["columns"] = columns
    wide = len(columns)
    for name in ("added_rows", "removed_rows"):
        rows = [row[:wide] for row in found[name]]
        kept[name] = table_fitting(columns, rows, _SAMPLE_WEIGHT)
    pairs = [[*old[:wide], *new[:wide]] for old, new in found["changed_rows"]]
    fits = table_fitting(columns, pairs, 2 * _SAMPLE_WEIGHT)
    kept["changed_rows"] = [(row[:wide], row[wide:]) for row in fits]
    return kept
