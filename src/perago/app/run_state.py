"""How a run stands: what the state says of it, and whether a process still drives it."""

from __future__ import annotations

from typing import Final

from perago.app.local import Home
from perago.process.lock import held, run_lock
from perago.workflow.records import RunStatus, left_to_people

INTERRUPTED: Final = "INTERRUPTED"
"""A run whose process is gone; it can be resumed."""
WAITING: Final = "WAITING"
"""A run that goes on when a person has done a step."""


def state_of(home: Home, run_id: str, status: str, root: str = "") -> str:
    """Return the state of a run; one whose process is gone was interrupted, not running.

    ``root`` is the run that it belongs to in the end, where that is known.
    """
    if status != RunStatus.RUNNING:
        return status
    root = root or home.state.root(home.state.run(run_id)).id
    if held(run_lock(home.locks, root)):
        return status
    return WAITING if left_to_people(home.state.family_tasks(root)) else INTERRUPTED
