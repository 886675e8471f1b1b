"""The directory that attempt directories are made in: marked, so that no other is swept (V6)."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perago.errors import WorkspaceError
from perago.filesystem import trees
from perago.workspace import markers

ROOT_MARKER = ".perago-root.json"
OWN = ".perago-"
"""What Perago puts into a root or an attempt directory for itself starts so."""
WORKSPACE = "workspace"
_CONTENT = {"perago": "attempt directories"}
PART = re.compile(r"local-[0-9a-f]{10}")
"""The part of a shared root that the local runs of one home have."""
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
"""A root is opened by the path that was configured, on which links are the operator's own."""
_SYSTEM = frozenset({"lost+found"})  # In the root of every ext4: the root may be a mount.


@contextmanager
def opened(root: Path) -> Iterator[int]:
    """Open a root, which is made and marked when there is none; another's is refused.

    ``OSError`` when it cannot be made or read.
    """
    try:
        fd = os.open(root, _FLAGS)
    except FileNotFoundError:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(root, _FLAGS)
    with _closing(fd):
        claim(fd, root)
        yield fd


@contextmanager
def existing(root: Path) -> Iterator[int | None]:
    """Open a root as it is; None when there is none."""
    try:
        fd = os.open(root, _FLAGS)
    except FileNotFoundError:
        yield None
        return
    with _closing(fd):
        yield fd


def claim(fd: int, root: Path, *, dry_run: bool = False) -> None:
    """Refuse an open root that is another's; mark one that is new, or older than the mark."""
    if markers.read(fd, ROOT_MARKER).get("perago") == _CONTENT["perago"]:
        return
    with os.scandir(fd) as found:
        strangers = sorted(entry.name for entry in found if not _is_ours(fd, entry.name))
    if strangers:
        raise WorkspaceError(
            f"{root} holds {strangers[0]!a}, which Perago did not make, so it is not used for"
            " attempt directories",
            remedy="set PERAGO_WORKSPACE_ROOT to a directory of its own, or move what is not"
            " Perago's out of this one",
        )
    if not dry_run:
        markers.write(fd, _CONTENT, ROOT_MARKER)


@contextmanager
def _closing(fd: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(fd)


def _is_ours(root: int, name: str) -> bool:
    """Tell what a version that did not mark its root has left in it."""
    if name.startswith(OWN) or name in _SYSTEM:
        return True
    try:
        if not stat.S_ISDIR(os.stat(name, dir_fd=root, follow_symlinks=False).st_mode):
            return False
        if PART.fullmatch(name):
            return True
        with trees.entered(root, name) as fd:
            return markers.names_it(markers.read(fd), name) or is_bare(fd)
    except FileNotFoundError:
        return True  # It is going just now: somebody of ours removes it.
    except OSError:
        return False


def is_bare(attempt_dir: int) -> bool:
    """Return whether there is nothing in a directory but what Perago puts into a new one."""
    with os.scandir(attempt_dir) as found:
        for entry in found:
            if entry.name == WORKSPACE and entry.is_dir(follow_symlinks=False):
                with trees.entered(attempt_dir, WORKSPACE) as fd, os.scandir(fd) as inside:
                    if next(inside, None) is not None:
                        return False
            elif not entry.name.startswith(OWN) or not entry.is_file(follow_symlinks=False):
                return False
    return True
