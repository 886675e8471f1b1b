"""Who owns a directory: a process id alone is not enough, ids are used again.

The token joins the boot, the PID namespace and the start time of the process, so that a new
process with the old number (the usual thing after a container restart) is not taken for the owner,
and a process of another container, whose number means nothing here, is not taken for dead.
"""

from __future__ import annotations

import os
from pathlib import Path

from perago.protocol.sweep import Owner

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")


def token_of(pid: int) -> str:
    """Identify a living process of this PID namespace; empty where the system cannot tell."""
    try:
        return f"{_here()}:{_stat(pid)[19]}"
    except (OSError, IndexError):
        return ""


def is_alive(pid: int, token: str) -> bool:
    """Return whether the process that wrote ``pid`` and ``token`` still runs, here."""
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
    return not token or token_of(pid) in {token, _with_namespace(token), ""}


def standing(pid: int, token: str) -> Owner:
    """Return what can be known here of the process that wrote ``pid`` and ``token``."""
    if pid <= 0:
        return Owner.GONE
    try:
        here = _here()
    except OSError:
        here = ""  # Neither could the writer tell: the number is all there is.
    written = _with_namespace(token)
    if token and here and written.rpartition(":")[0] != here:
        return Owner.FOREIGN
    if is_alive(pid, token):
        return Owner.ALIVE
    # A token of an older version does not say in which namespace the number was looked at.
    return Owner.GONE if written == token else Owner.FOREIGN


def _here() -> str:
    """Name the boot and the PID namespace that we see numbers of."""
    return f"{_BOOT.read_text().strip()}:{_NAMESPACE.stat().st_ino}"


def _with_namespace(token: str) -> str:
    """Read a token of an older version, without a namespace, as one of ours."""
    boot, _, rest = token.partition(":")
    if not boot or ":" in rest:
        return token
    try:
        return f"{boot}:{_NAMESPACE.stat().st_ino}:{rest}"
    except OSError:
        return token


def _stat(pid: int) -> list[str]:
    """Read the fields after the name, the state first; none where the system has no /proc."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
