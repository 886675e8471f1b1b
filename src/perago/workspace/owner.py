"""Who owns a directory: a process id alone is not enough, ids are used again.

The token joins the boot and the start time of the process, so that a new process with the old
number (the usual thing after a container restart) is not taken for the owner.
"""

from __future__ import annotations

import os
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")


def token_of(pid: int) -> str:
    """Identify a living process; empty where the system cannot tell."""
    try:
        return f"{_BOOT.read_text().strip()}:{_stat(pid)[19]}"
    except (OSError, IndexError):
        return ""


def is_alive(pid: int, token: str) -> bool:
    """Tell whether the process that wrote ``pid`` and ``token`` still runs."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):  # Gone, or no number a process can have.
        return False
    except PermissionError:
        pass  # It exists, and belongs to another user.
    if _stat(pid)[:1] in (["Z"], ["X"]):
        return False  # Dead, and only not yet reaped by its parent.
    return not token or token_of(pid) in {token, ""}


def _stat(pid: int) -> list[str]:
    """Read the fields after the name, the state first; none where the system has no /proc."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
