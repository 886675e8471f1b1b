"""How much memory an executor takes with all it started, and how much there is."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

SHARE: Final = 0.9
_CGROUP: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def bytes_of(pid: int) -> int | None:
    """Add up the resident memory of a process and its descendants; None where it is unknown."""
    total = _resident(pid)
    if total is None:
        return None
    pending = [pid]
    while pending:
        for child in children_of(pending.pop()):
            total += _resident(child) or 0
            pending.append(child)
    return total


def ceiling(limit: int | None) -> int | None:
    """Return the limit that was set, else nine tenths of the container's or machine's memory."""
    if limit is not None:
        return limit
    found = _machine()
    for path in _CGROUP:
        with suppress(OSError, ValueError):
            bound = int(path.read_text())
            found = bound if found is None else min(found, bound)
    return None if found is None else int(found * SHARE)


def _machine() -> int | None:
    with suppress(OSError, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return None


def _resident(pid: int) -> int | None:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_bytes().split()[1])
    except (OSError, IndexError, ValueError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def children_of(pid: int) -> list[int]:
    """List the children of every thread of a process; one that has ended has none."""
    found: list[int] = []
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                text = (thread / "children").read_text()
                found += map(int, text.split())
    return found
