"""What the supervisor knows of an execution under way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from perago.protocol.attempt_state import AttemptState
from perago.protocol.values import Claim, Phase, Staging

TRACED: Final = "traced"
LEFT: Final = "left"
"""Said of a staging branch that its executor leaves to whoever reports."""


@dataclass(slots=True, eq=False)
class RunningExecution:
    """One execution."""

    claim: Claim
    worker_id: str
    since: float
    state: AttemptState = field(default_factory=AttemptState)
    reporting: bool = False
    """Whether its executor is done with it and only the report is left."""
    trace: Mapping[str, str] = field(default_factory=dict)
    """The context of its own span, when it has one."""
    left: Staging | None = None
    """The private branch that is still to be removed (step 13)."""
    unconfirmed: bool = False
    """Whether its result was sent and is still to be read back (R2)."""
    kill_at: float | None = None
    """When it is ended (monotonic), if it is lost and does not give up by itself."""

    @property
    def lost(self) -> bool:
        """Return whether it is no longer wanted."""
        return self.kill_at is not None

    @property
    def decided(self) -> bool:
        """Return whether its outcome is known; what is left is to clean up and to report."""
        return self.state.outcome is not None

    @property
    def leaves_directory(self) -> bool:
        """Return whether the removal of its directory did not come to its end (step 14)."""
        return self.state.phase == Phase.CLEAN_ATTEMPT_DIR

    def as_json(self) -> dict[str, Any]:
        """Say it in plain values."""
        attempt = self.claim.attempt
        return {
            "worker_id": self.worker_id,
            "task": attempt.task_def_name,
            "step": attempt.reference_task_name,
            "workflow_instance_id": attempt.workflow_instance_id,
            "task_id": attempt.task_id,
            "retry_count": attempt.retry_count,
            "execution_id": self.claim.execution_id,
            "phase": self.state.last_phase,
            "since": self.since,
            "lost": self.lost,
        }


@dataclass(slots=True)
class WorkerTally:
    """What has happened since the start."""

    completed: int = 0
    failed: int = 0
    lost: int = 0
    died: int = 0
    given_back: int = 0

    def as_json(self) -> dict[str, int]:
        """Return the counts."""
        return {
            "completed": self.completed,
            "failed": self.failed,
            "lost": self.lost,
            "died": self.died,
            "given_back": self.given_back,
        }
