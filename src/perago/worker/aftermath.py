"""What is to be done for an execution that did not live to do it itself (R3, W5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from perago.errors import PeragoError, TaskInputError
from perago.ports import Broker, Clock
from perago.protocol import names
from perago.protocol.job import parse_workspace
from perago.protocol.outcome import Outcome, shorten
from perago.protocol.values import Claim, Staging, Status
from perago.worker.crew import Crew
from perago.workspace.rooms import remove_tree
from perago.workspace.sweeper import sweep

_CREW: Final = 2
Note = Callable[[str, Mapping[str, object]], None]


@dataclass(frozen=True, slots=True)
class Grounds:
    """Where executions leave things, and who can remove them."""

    root: Path
    ttl_seconds: float
    drop: Callable[[Staging], None] | None
    """Removes a staging branch; None when no task has a workspace."""
    broker: Callable[[Claim, str], Broker]
    """Makes the broker for one claim and one worker id."""
    reason_limit: int
    alone: bool = True
    """Whether an execution that was ended is really over; a thread may still use its things."""


@dataclass(frozen=True, slots=True)
class Dead:
    """An execution that is over; without a reason its attempt was lost, and nobody is told."""

    claim: Claim
    worker_id: str
    reason: str


class Aftermath:
    """Cleans up and reports, away from the supervisor's own thread."""

    def __init__(self, grounds: Grounds, clock: Clock, note: Note) -> None:
        self._grounds = grounds
        self._clock = clock
        self._note = note
        self._crew = Crew("aftermath", _CREW, lambda error: note("failed", {"why": str(error)}))

    def settle(self, dead: Dead, release: Callable[[], None]) -> None:
        """Remove what it left, release its lease, report it (steps 13 to 15 of the lifecycle)."""
        self._crew.do(lambda: self._settle(dead, release))

    def do(self, errand: Callable[[], None]) -> None:
        """Do something else that must not keep the supervisor waiting."""
        self._crew.do(errand)

    def sweep(self) -> None:
        """Remove the directories of owners that are gone."""
        grounds = self._grounds
        swept = sweep(grounds.root, grounds.ttl_seconds, self._clock)
        if gone := [str(found.path) for found in swept if found.removed]:
            self._note("swept", {"directories": gone})

    @property
    def left(self) -> int:
        """Count what is not done yet."""
        return self._crew.left

    def close(self, timeout_seconds: float) -> bool:
        """Finish; False when something is still under way."""
        return self._crew.close(timeout_seconds)

    def _settle(self, dead: Dead, release: Callable[[], None]) -> None:
        try:
            if self._grounds.alone:
                self._remove_room(dead)
                self._drop_staging(dead)
        finally:
            release()
            if dead.reason:
                self._report(dead)

    def _remove_room(self, dead: Dead) -> None:
        attempt = dead.claim.attempt
        try:
            path = self._grounds.root / names.room(attempt.task_id, dead.claim.execution_id)
            remove_tree(path, lambda: False)
        except PeragoError as error:
            self._note("failed to clean attempt-local workspace", {"why": str(error)})

    def _drop_staging(self, dead: Dead) -> None:
        if self._grounds.drop is None:
            return
        with suppress(TaskInputError):  # Without a valid workspace there never was a branch.
            workspace = parse_workspace(dead.claim.input.get("workspace"))
            branch = names.staging_branch(dead.claim.attempt, dead.claim.execution_id)
            try:
                self._grounds.drop(Staging(workspace.repository, branch))
            except PeragoError as error:
                self._note("failed to clean staging workspace", {"why": str(error)})

    def _report(self, dead: Dead) -> None:
        reason = shorten(dead.reason, self._grounds.reason_limit)
        attempt = dead.claim.attempt
        facts = {"task_id": attempt.task_id, "execution_id": dead.claim.execution_id}
        try:
            broker = self._grounds.broker(dead.claim, dead.worker_id)
            accepted = broker.report(attempt, Outcome(Status.FAILED, reason=reason))
        except PeragoError as error:
            self._note("report failed", {**facts, "why": str(error)})
        else:
            self._note("reported for the dead" if accepted else "report not wanted", facts)
