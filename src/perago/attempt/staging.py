"""Step 9: the private branch of one execution, made, filled and sealed (S1 to S5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from perago.attempt.progress import AttemptProgress
from perago.errors import AlreadyExistsError, PeragoError
from perago.ports import Patience, Put, Store
from perago.protocol import audit, events, names
from perago.protocol.budget import Budget, commit_seconds
from perago.protocol.values import Claim, Phase, StagedWorkspace, Staging


@dataclass(frozen=True, slots=True)
class Stage:
    """The branch exists only inside ``undo``; its name is known before it is made (S4)."""

    claim: Claim
    repository: str
    store: Store
    progress: AttemptProgress
    undo: ExitStack
    drop: Callable[[Staging], None]

    @property
    def staging(self) -> Staging:
        """Name the branch."""
        name = names.staging_branch(self.claim.attempt, self.claim.execution_id)
        return Staging(self.repository, name)

    def open(self, base: str) -> None:
        """Create the branch; from the first moment it may exist, its removal is due (S4)."""
        try:
            self.store.open_staging(self.staging, base)
        except AlreadyExistsError:
            raise  # It belongs to another execution: never reused, never deleted.
        except PeragoError:
            self._drop_later()
            raise
        self._drop_later()
        self.progress.event(events.BranchCreated(self.staging.branch, base))

    def fill(self, puts: Sequence[Put], deletes: Sequence[str]) -> None:
        """Bring the branch to the wanted state (S2)."""
        total = sum(put.entry.size for put in puts)
        meter = self.progress.meter(Phase.STAGE, total)
        self.store.write(self.staging, puts, deletes, meter)
        self.progress.event(events.Uploaded(len(puts), total, len(deletes), *meter.pace()))

    def seal(
        self, metadata: Mapping[str, str], budget: Budget, response_seconds: float
    ) -> StagedWorkspace:
        """Commit it: C. It may take as long as the attempt has time."""
        seconds = commit_seconds(budget, response_seconds, self.progress.left())
        margin = budget.safety_margin_seconds
        patience = Patience(seconds, margin, self.progress.refuse_lost)
        said = audit.message(self.claim)
        staged = self.store.seal(self.staging, said, metadata, patience)
        self.progress.event(events.Committed(staged.commit))
        return staged

    def _drop_later(self) -> None:
        self.undo.callback(
            self.progress.clean,
            Phase.CLEAN_STAGING,
            "failed to clean staging workspace",
            lambda: self.drop(self.staging),
        )
