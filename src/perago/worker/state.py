"""The supervisor's state in one small file: written whole or not at all, read by ``status``."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from perago.errors import UsageError
from perago.filesystem import roots
from perago.process.lock import FileLock, held
from perago.protocol.reading import read_json
from perago.redaction import hidden_facts

STATE: Final = ".perago-supervisor.json"
LOCK: Final = ".perago-supervisor.lock"
_LOCK_SECONDS: Final = 1.0


def lock_root(root: Path) -> FileLock:
    """Take a root for one supervisor; the kernel gives it back however the process ends (W2).

    Nothing that stands in the file matters: neither a dead process nor one that once had our
    own number can keep us out.
    """
    roots.secure(root, roots.WORKSPACES)
    lock = FileLock(root / LOCK)
    if lock.acquire(_LOCK_SECONDS):
        return lock
    pid = read_state(root).get("pid", "unknown")
    raise UsageError(
        f"root {root} is in use by another worker (pid {pid})",
        remedy="stop that worker, or set PERAGO_WORKSPACE_ROOT to a directory of its own",
    )


def in_use(root: Path) -> bool:
    """Return whether a supervisor holds this root."""
    return held(FileLock(root / LOCK))


def read_state(root: Path) -> dict[str, Any]:
    """Read what the supervisor of a root last wrote; empty when there is nothing."""
    try:
        found = read_json((root / STATE).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


@dataclass(slots=True)
class StateFile:
    """Writes the state when it differs, and when it is old."""

    root: Path
    every_seconds: float
    soonest_seconds: float
    _last: str = ""
    _at: float = float("-inf")

    def write(self, state: dict[str, Any], now: float, *, at_once: bool = False) -> None:
        """Write if it is time; a full disk must not stop a worker."""
        age = now - self._at
        if not at_once and age < self.soonest_seconds:
            return
        state = hidden_facts(state)
        text = json.dumps({key: value for key, value in state.items() if key != "written_at"})
        if text == self._last and age < self.every_seconds and not at_once:
            return
        self._last, self._at = text, now
        with suppress(OSError):
            roots.write_private(self.root / STATE, json.dumps(state, indent=1) + "\n")
