"""Attempt directories: ``<root>/<task id>-<execution id>/`` with a marker and ``workspace/``.

The marker stands beside the author's directory, not in it: no guard sees it, no body deletes it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from perago.errors import WorkspaceError
from perago.filesystem import trees
from perago.ports import AttemptDir, Clock
from perago.protocol import names
from perago.protocol.paths import MARKER
from perago.protocol.values import Attempt
from perago.workspace import markers, roots, stamps
from perago.workspace.owner import token_of
from perago.workspace.roots import WORKSPACE
from perago.workspace.spreading import spread


class LocalAttemptDirs:
    """Makes and removes the directories of one worker."""

    def __init__(self, root: Path, worker_id: str, clock: Clock) -> None:
        self._root = root.absolute()  # A body may change the working directory.
        self._worker_id = worker_id
        self._clock = clock
        self._spread = False
        self._times_tell: dict[int, bool] = {}

    def enter(self, attempt: Attempt, execution_id: str) -> AttemptDir:
        """Make a directory that only this execution uses; private to this user."""
        name = names.attempt_dir(attempt.task_id, execution_id)
        path = self._root / name
        try:
            with roots.opened(self._root) as root:
                if not self._spread:
                    self._spread = True
                    spread(self._root)
                os.mkdir(name, 0o700, dir_fd=root)
                try:
                    with trees.entered(root, name) as attempt_dir:
                        made = trees.identity(os.fstat(attempt_dir))
                        markers.write(attempt_dir, self._marker(attempt, execution_id))
                        os.mkdir(WORKSPACE, 0o700, dir_fd=attempt_dir)
                except OSError:
                    with suppress(OSError):
                        trees.remove(root, name)  # A half-made directory belongs to no attempt.
                    raise
        except OSError as error:
            raise _unusable("attempt directory", path, error) from error
        return AttemptDir(path, path / WORKSPACE, made, self._do_times_tell(made[0]))

    def leave(self, attempt_dir: AttemptDir, timeout_seconds: float) -> None:
        """Remove the directory; the marker goes last, so that a cut-off removal is swept later."""
        deadline = self._clock.monotonic() + timeout_seconds
        with told(attempt_dir.path), roots.existing(attempt_dir.path.parent) as root:
            if root is None:
                return
            try:
                remove_room(
                    root,
                    attempt_dir.path.name,
                    lambda: self._clock.monotonic() > deadline,
                    attempt_dir.made,
                )
            except OSError:
                self._abandon(root, attempt_dir)
                raise

    def _do_times_tell(self, device: int) -> bool:
        """Try it once for a file system; where it cannot be tried now, nothing is believed."""
        if device not in self._times_tell:
            tell = stamps.tell(self._root)
            if tell is None:
                return False
            self._times_tell[device] = tell
        return self._times_tell[device]

    def _abandon(self, root: int, attempt_dir: AttemptDir) -> None:
        """Say that nobody works there any more, so that a sweep tries again while we live (W5)."""
        with suppress(OSError), trees.entered(root, attempt_dir.path.name, attempt_dir.made) as fd:
            if marker := markers.read(fd):
                markers.write(fd, marker | {"abandoned_at": self._clock.now()})

    def _marker(self, attempt: Attempt, execution_id: str) -> dict[str, object]:
        return {
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


def claim_root(root: Path) -> None:
    """Make a root ours before anything is put into it; another's is refused (V6)."""
    try:
        with roots.opened(root):
            pass
    except OSError as error:
        raise _unusable("root", root, error) from error


def check_root(root: Path) -> None:
    """Refuse a root that is another's; nothing is made or marked."""
    try:
        with roots.existing(root) as fd:
            if fd is not None:
                roots.claim(fd, root, dry_run=True)
    except OSError as error:
        raise _unusable("root", root, error) from error


def remove_room(
    root: int,
    name: str,
    out_of_time: Callable[[], bool] = trees.never,
    made: trees.Identity | None = None,
) -> None:
    """Remove an attempt directory in an open root, its marker last; what is gone is fine."""
    try:
        with trees.entered(root, name, made, unlock=True) as attempt_dir:
            trees.empty(attempt_dir, out_of_time, keep=(MARKER,))
            marker = markers.read(attempt_dir)
            trees.remove(attempt_dir, MARKER)
            try:
                os.rmdir(name, dir_fd=root)
            except FileNotFoundError:
                raise
            except OSError:  # Somebody writes on: without the marker no sweep would try again.
                with suppress(OSError):
                    markers.write(attempt_dir, marker)
                raise
    except FileNotFoundError:
        return


def remove_tree(path: Path, out_of_time: Callable[[], bool]) -> None:
    """Remove a directory without following links; what is already gone is fine."""
    with told(path), suppress(FileNotFoundError), trees.opened(path.parent) as above:
        trees.remove(above, path.name, out_of_time)


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Say in one sentence why a directory could not be removed, and what could not."""
    try:
        yield
    except TimeoutError as error:
        raise WorkspaceError(
            f"time is up while removing {path}",
            remedy="nothing to do: the next sweep removes the rest",
        ) from error
    except OSError as error:
        what = f"{error.filename!a}: " if isinstance(error.filename, str) else ""
        raise WorkspaceError(
            f"{path} cannot be removed: {what}{error.strerror or error}",
            remedy="unmount or release what is in the way; the next sweep tries again",
        ) from error


def _unusable(what: str, path: Path, error: OSError) -> WorkspaceError:
    return WorkspaceError(
        f"{what} {path} cannot be made: {error.strerror or error}",
        remedy="check PERAGO_WORKSPACE_ROOT, its permissions and free space",
    )
