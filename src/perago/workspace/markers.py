"""Small JSON files by which Perago knows its own directories again."""

from __future__ import annotations

import json
import os
import stat
import uuid
from collections.abc import Mapping
from contextlib import suppress

from perago.protocol import names
from perago.protocol.paths import MARKER
from perago.protocol.reading import read_json

_MOST_BYTES = 1 << 16
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def read(directory: int, name: str = MARKER) -> dict[str, object]:
    """Read a marker in an open directory; empty when there is none that says something."""
    try:
        fd = os.open(name, _READ, dir_fd=directory)
        try:
            plain = stat.S_ISREG(os.fstat(fd).st_mode)
            found = read_json(os.read(fd, _MOST_BYTES)) if plain else None
        finally:
            os.close(fd)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write(directory: int, content: Mapping[str, object], name: str = MARKER) -> None:
    """Write a marker; it is renamed into place, so that one that can be read is whole."""
    draft = f"{name}.{uuid.uuid4().hex}"
    fd = os.open(draft, _CREATE, 0o600, dir_fd=directory)
    try:
        with os.fdopen(fd, "wb") as file:  # Where the disk is almost full, one write may be short.
            file.write((json.dumps(content, indent=2) + "\n").encode())
        os.rename(draft, name, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError:
        with suppress(OSError):
            os.unlink(draft, dir_fd=directory)
        raise


def names_it(marker: Mapping[str, object], directory_name: str) -> bool:
    """Return whether an attempt's marker is of the directory of that name, and not a copy's."""
    task_id, execution_id = marker.get("task_id"), marker.get("execution_id")
    if not isinstance(task_id, str) or not isinstance(execution_id, str):
        return False
    return names.attempt_dir(task_id, execution_id) == directory_name
