"""Removes the attempt directories that dead executors left (W5)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from perago.errors import WorkspaceError
from perago.ports import Clock
from perago.protocol.paths import MARKER
from perago.protocol.reading import read_json
from perago.protocol.sweep import FoundRoom, judge
from perago.workspace.owner import is_alive
from perago.workspace.rooms import OWN, WORKSPACE, remove_tree


@dataclass(frozen=True, slots=True)
class Swept:
    """One directory the sweep looked at."""

    path: Path
    removed: bool
    why: str


def sweep(
    root: Path,
    ttl_seconds: float,
    clock: Clock,
    *,
    in_progress: Callable[[], Collection[str]] | None = None,
    dry_run: bool = False,
) -> list[Swept]:
    """Judge every attempt directory below a root; keep what a living owner holds.

    ``in_progress`` asks the broker for execution ids, where it can be asked. That happens after
    the directories were listed: what is listed was claimed before.
    """
    swept: list[Swept] = []
    paths = list(_rooms(root))
    busy = in_progress() if in_progress is not None else None
    for path in paths:
        found = _look(path, clock)
        if busy is not None:
            found = replace(found, in_progress=any(map(path.name.endswith, busy)))
        verdict = judge(found, ttl_seconds)
        removed, why = verdict.remove, verdict.why
        if removed and not dry_run:
            try:
                remove_tree(path, lambda: False)
            except WorkspaceError as error:
                removed, why = False, str(error)
        swept.append(Swept(path, removed, why))
    return swept


def remove_rooms_of(root: Path, execution_id: str) -> int:
    """Remove what one dead execution left; targeted by its marker."""
    removed = 0
    for path in _rooms(root):
        if _marker(path).get("execution_id") == execution_id:
            remove_tree(path, lambda: False)
            removed += 1
    return removed


def _rooms(root: Path) -> Iterator[Path]:
    if root.is_dir():
        yield from sorted(p for p in root.iterdir() if not p.is_symlink() and _is_room(p))


def _is_room(path: Path) -> bool:
    """Tell an attempt directory by what is in it: a root may hold other people's directories."""
    try:
        found = [entry.name for entry in path.iterdir()]
    except OSError:
        return False
    return all(name == WORKSPACE or name.startswith(OWN) for name in found)


def _look(path: Path, clock: Clock) -> FoundRoom:
    marker = _marker(path)
    try:
        age = clock.now() - path.stat().st_mtime
    except OSError:
        age = 0.0
    return FoundRoom(
        name=path.name,
        age_seconds=age,
        owner_alive=is_alive(_number(marker.get("owner_pid")), str(marker.get("owner_token", ""))),
        has_marker=bool(marker),
    )


def _marker(path: Path) -> dict[str, object]:
    try:
        found = read_json((path / MARKER).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
