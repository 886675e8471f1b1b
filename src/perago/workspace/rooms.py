"""Attempt directories: ``<root>/<task id>-<execution id>/`` with a marker and ``workspace/``.

The marker stands beside the author's directory, not in it: no guard sees it, no body deletes it.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from perago.errors import WorkspaceError
from perago.ports import Clock, Room
from perago.protocol import names
from perago.protocol.paths import MARKER
from perago.protocol.values import Attempt
from perago.workspace.owner import token_of
from perago.workspace.spreading import spread

WORKSPACE = "workspace"
OWN = ".perago-"  # What else a room holds starts so, the marker first of all.
_MAX_PATH = 2048


class AttemptRooms:
    """Makes and removes the directories of one worker."""

    def __init__(self, root: Path, worker_id: str, clock: Clock) -> None:
        self._root = root
        self._worker_id = worker_id
        self._clock = clock
        self._spread = False

    def enter(self, attempt: Attempt, execution_id: str) -> Room:
        """Make a directory that only this execution uses; private to this user."""
        path = self._root / names.room(attempt.task_id, execution_id)
        try:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._spread:
                self._spread = True
                spread(self._root)
            path.mkdir(mode=0o700)
            try:
                self._mark(path, attempt, execution_id)
                (path / WORKSPACE).mkdir(mode=0o700)
            except OSError:
                with suppress(WorkspaceError):
                    remove_tree(path, lambda: False)  # Half a room is nobody's.
                raise
        except OSError as error:
            raise WorkspaceError(
                f"attempt directory {path} cannot be made: {error.strerror or error}",
                remedy="check PERAGO_WORKSPACE_ROOT, its permissions and free space",
            ) from error
        return Room(path, path / WORKSPACE)

    def leave(self, room: Room, timeout_seconds: float) -> None:
        """Remove the directory; the marker goes last, so that a cut-off removal is swept later."""
        deadline = self._clock.monotonic() + timeout_seconds
        remove_tree(room.workspace, lambda: self._clock.monotonic() > deadline)
        remove_tree(room.path, lambda: False)

    def _mark(self, path: Path, attempt: Attempt, execution_id: str) -> None:
        marker = {
            "workflow_instance_id": attempt.workflow_instance_id,
            "task_id": attempt.task_id,
            "execution_id": execution_id,
            "retry_count": attempt.retry_count,
            "task_def_name": attempt.task_def_name,
            "owner_worker_id": self._worker_id,
            "owner_pid": os.getpid(),
            "owner_token": token_of(os.getpid()),
            "started_at": self._clock.now(),
        }
        # Renamed into place: a marker that can be read is whole.
        draft = path / f"{MARKER}.new"
        draft.write_text(json.dumps(marker, indent=2) + "\n")
        draft.rename(path / MARKER)


def remove_tree(path: Path, out_of_time: Callable[[], bool]) -> None:
    """Remove a directory without following links; what is already gone is fine."""
    directories = [os.fspath(path)]
    try:
        for directory in directories:  # It grows while we walk down it.
            for entry in _entries(directory):
                if out_of_time():
                    raise WorkspaceError(
                        f"time is up while removing {path}",
                        remedy="nothing to do: the next sweep removes the rest",
                    )
                with suppress(FileNotFoundError):
                    if entry.is_dir(follow_symlinks=False):
                        directories.append(_within_reach(entry.path, path, len(directories)))
                    else:
                        os.unlink(entry.path)  # noqa: PTH108 - a hot loop over plain strings
        for directory in reversed(directories):
            with suppress(FileNotFoundError):
                os.rmdir(directory)  # noqa: PTH106 - as above
    except OSError as error:
        raise WorkspaceError(f"{path} cannot be removed: {error.strerror or error}") from error


def _within_reach(directory: str, top: Path, number: int) -> str:
    """Lift a directory whose path grows beyond what the system takes; it goes anyway."""
    if len(os.fsencode(directory)) < _MAX_PATH:
        return directory
    lifted = os.fspath(top / f"{OWN}deep-{number}")
    os.rename(directory, lifted)  # noqa: PTH104 - as above
    return lifted


def _entries(directory: str) -> list[os.DirEntry[str]]:
    """List a directory; modes are not content, so they may be changed to get at it."""
    try:
        if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
            os.chmod(directory, stat.S_IRWXU)  # noqa: PTH101 - as above
        with os.scandir(directory) as found:
            return list(found)
    except FileNotFoundError:
        return []
