"""Brings the files of a table to where they can be read: one file, or those of a directory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import unquote

from perago.data.files import is_data
from perago.errors import NotFoundError, UsageError
from perago.ports import Fetch
from perago.protocol.delta_log import LOG
from perago.protocol.paths import Selection, plan_download
from perago.protocol.printable import size
from perago.protocol.values import ObjectInfo
from perago.ui.contents import table_suffix
from perago.ui.levels import Level
from perago.ui.previewing import Previewer
from perago.ui.versions import CommitView

MOST_BYTES: Final = 64_000_000
MOST_FILES: Final = 500
_MOST_LOG: Final = 4_000_000
_REMEDY: Final = "use 'perago checkout' and look at it with your own tools"


def looks_like_table(level: Level) -> bool:
    """Tell by names whether a directory may be a table. Pure."""
    return any(
        entry.name == LOG
        or (entry.size is None and "=" in entry.name.strip("="))
        or (entry.size and table_suffix(entry.name) and is_data(PurePosixPath(entry.name)))
        for entry in level.entries
    )


def table_files(previewer: Previewer, version: CommitView, path: str) -> list[ObjectInfo]:
    """List the files of the table at a path; a path of a directory ends in a slash."""
    if not path.endswith("/"):
        found = version.find(path)
        if found is None:
            raise NotFoundError(f"there is nothing at {path!r} in this version")
        files = [found]
    else:
        files = _below(previewer, version, path)
    total = sum(info.size for info in files)
    if total > MOST_BYTES:
        told = f"it has {size(total)}, more than the {size(MOST_BYTES)} that a page reads"
        raise UsageError(told, remedy=_REMEDY)
    return files


def _below(previewer: Previewer, version: CommitView, directory: str) -> list[ObjectInfo]:
    listed = version.below(directory, MOST_FILES + 1)
    if not listed:
        raise NotFoundError(f"there is nothing below {directory!r} in this version")
    if len(listed) > MOST_FILES:
        told = f"it has more than the {MOST_FILES} files that a page reads"
        raise UsageError(told, remedy=_REMEDY)
    names = {info.key.removeprefix(directory): info for info in listed}
    log = {name: info for name, info in names.items() if name.startswith(LOG)}
    if not log:
        return [info for name, info in names.items() if is_data(PurePosixPath(name))]
    paths = _active(previewer, version, log)
    missing = next((path for path in paths if path not in names), None)
    if missing is not None:
        raise UsageError(f"its log names {missing!r}, which is not there", remedy=_REMEDY)
    return [names[path] for path in paths]


def _active(previewer: Previewer, version: CommitView, log: dict[str, ObjectInfo]) -> Sequence[str]:
    """Have the log of a Delta table read: like everything in a workspace, it may be anything."""
    if sum(info.size for info in log.values()) > _MOST_LOG:
        raise UsageError("the log of this Delta table is too long for a page", remedy=_REMEDY)

    def prepare(scratch: Path) -> dict[str, object]:
        entries = {name.removeprefix(LOG): info for name, info in log.items()}
        wanted = [
            Fetch(info.key, info.entry, scratch / f"{number}.json")
            for number, info in enumerate(entries.values())
            if info.key.endswith(".json")
        ]
        version.fetch(wanted)
        names = {fetch.key: str(fetch.to) for fetch in wanted}
        told = {name: names[info.key] for name, info in entries.items() if info.key in names}
        return {"what": "delta", "log": told}

    name = ("delta", tuple((name, info.checksum) for name, info in log.items()))
    found = previewer.find(name, prepare)
    if "problem" in found:
        raise UsageError(str(found["problem"]), remedy=_REMEDY)
    return [unquote(str(path)) for path in found["paths"]]


def bring_table(version: CommitView, path: str, files: Sequence[ObjectInfo], to: Path) -> str:
    """Write the files of a table below a directory; return where the table is below it.

    A single file keeps nothing of its name but the ending; in a directory names mean something,
    and one that cannot be a file of this machine is refused.
    """
    if not path.endswith("/"):
        name = f"table{table_suffix(path) or ''}"
        version.bring(files[0], to / name)
        return name
    plan = plan_download(Selection(""), files)
    version.fetch([Fetch(key, entry, to / key) for key, entry in plan.items()])
    return path.rstrip("/")


def name_of(files: Sequence[ObjectInfo]) -> tuple[tuple[str, str, int], ...]:
    """Name the content of a table: equal names are equal contents."""
    return tuple((info.key, info.checksum, info.size) for info in files)
