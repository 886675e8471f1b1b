"""Removes the attempt directories that dead executors left (W5); nobody else's (V6)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from perago.errors import WorkspaceError
from perago.filesystem import trees
from perago.ports import Clock
from perago.protocol import names
from perago.protocol.sweep import FoundAttemptDir, Owner, judge
from perago.workspace import markers, roots
from perago.workspace.attempt_dirs import remove_room, told
from perago.workspace.owner import standing

InProgress = Callable[[str, Mapping[str, object]], bool | None]
"""Asks the broker for the attempt of a directory, by its name and its marker; None: unknown."""


@dataclass(frozen=True, slots=True)
class Swept:
    """One directory the sweep looked at; ``failed``: it should have gone."""

    path: Path
    removed: bool
    why: str
    failed: bool = False


def sweep(
    root: Path,
    ttl_seconds: float,
    clock: Clock,
    *,
    in_progress: InProgress | None = None,
    dry_run: bool = False,
) -> list[Swept]:
    """Judge every attempt directory below a root; keep what a living owner holds.

    The broker is asked after the directories were listed: what is listed was claimed before.
    ``WorkspaceError``: the root is not ours.
    """
    with roots.existing(root) as fd:
        if fd is None:
            return []
        roots.claim(fd, root, dry_run=dry_run)
        found = [each for name in trees.names(fd) if (each := _look(fd, name, clock)) is not None]
        return [
            _judged(fd, root, _asked(each, in_progress), ttl_seconds, dry_run=dry_run)
            for each in found
        ]


def remove_attempt_dir_of(
    root: Path, task_id: str, execution_id: str, out_of_time: Callable[[], bool] = trees.never
) -> None:
    """Remove what one dead execution left, by its name, which nobody else's has."""
    name = names.attempt_dir(task_id, execution_id)
    with told(root / name), roots.existing(root) as fd, suppress(FileNotFoundError):
        if fd is not None:
            _remove_dead(fd, name, out_of_time)


def _remove_dead(root: int, name: str, out_of_time: Callable[[], bool]) -> None:
    """Remove a directory unless a body has put something else in its place (V6)."""
    try:
        marked, bare, made = _told_apart(root, name)
    except PermissionError:  # Only its mode is in the way, which is not content.
        marked, bare, made = _told_apart(root, name, unlock=True)
    if marked:
        remove_room(root, name, out_of_time, made)
    elif bare:  # It died before the marker was there, or after it was removed.
        _remove_bare(root, name)
    else:
        raise WorkspaceError(
            f"{name} stays: no marker says that it is Perago's",
            remedy="move what is yours out of it, then remove it by hand",
        )


def _told_apart(root: int, name: str, *, unlock: bool = False) -> tuple[bool, bool, trees.Identity]:
    """Return whether a directory is marked as ours, whether it is bare, and which it is."""
    with trees.entered(root, name, unlock=unlock) as attempt_dir:
        marked = markers.names_it(markers.read(attempt_dir), name)
        bare = not marked and roots.is_bare(attempt_dir)
        return marked, bare, trees.identity(os.fstat(attempt_dir))


@dataclass(frozen=True, slots=True)
class _Look:
    found: FoundAttemptDir
    marker: Mapping[str, object]
    identity: trees.Identity


def _look(root: int, name: str, clock: Clock) -> _Look | None:
    """Look at an entry of a root; None when it is no attempt directory, nor looks like one."""
    if name.startswith(roots.OWN) or roots.PART.fullmatch(name):
        return None
    try:
        with trees.entered(root, name) as attempt_dir:
            seen = os.fstat(attempt_dir)
            marker = markers.read(attempt_dir)
            ours = markers.names_it(marker, name)
            if not ours and not _is_shaped(attempt_dir):
                return None
            pid, token = marker.get("owner_pid"), marker.get("owner_token", "")
            found = FoundAttemptDir(
                name=name,
                age_seconds=clock.now() - seen.st_mtime,
                owner=standing(pid if isinstance(pid, int) else 0, str(token)) if ours else None,
                abandoned=ours and "abandoned_at" in marker,
                bare=not ours and roots.is_bare(attempt_dir),
            )
            return _Look(found, marker, trees.identity(seen))
    except OSError:
        return None


def _is_shaped(attempt_dir: int) -> bool:
    """Return whether a directory holds what an attempt directory does, marked or not."""
    return all(
        name == roots.WORKSPACE or name.startswith(roots.OWN) for name in trees.names(attempt_dir)
    )


def _asked(look: _Look, in_progress: InProgress | None) -> _Look:
    """Add what the broker says where it can matter; a question takes time."""
    if in_progress is None or look.found.owner in {Owner.ALIVE, Owner.GONE}:
        return look
    answer = in_progress(look.found.name, look.marker)
    return replace(look, found=replace(look.found, in_progress=answer))


def _judged(root: int, path: Path, look: _Look, ttl_seconds: float, *, dry_run: bool) -> Swept:
    name = look.found.name
    verdict = judge(look.found, ttl_seconds)
    if verdict.remove and not dry_run:
        try:
            with told(path / name):
                if look.found.owner is None:
                    _remove_bare(root, name)
                else:
                    remove_room(root, name, made=look.identity)
        except WorkspaceError as error:
            return Swept(path / name, removed=False, why=str(error), failed=True)
    return Swept(path / name, verdict.remove, verdict.why)


def _remove_bare(root: int, name: str) -> None:
    """Remove a directory without a marker; one that has content after all stays."""
    with suppress(FileNotFoundError):
        with trees.entered(root, name) as attempt_dir:
            for own in trees.names(attempt_dir):
                if own.startswith(roots.OWN):
                    os.unlink(own, dir_fd=attempt_dir)
                elif own == roots.WORKSPACE:
                    os.rmdir(own, dir_fd=attempt_dir)
        os.rmdir(name, dir_fd=root)
