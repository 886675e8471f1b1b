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


def state_of(home: Home, run_id: str, status: str) -> str:
    """Return the state of a run; one whose process is gone was interrupted, not running."""
    if status != RunStatus.RUNNING or held(run_lock(home.locks, run_id)):
        return status
    return WAITING if left_to_people(home.state.tasks(run_id)) else INTERRUPTED
