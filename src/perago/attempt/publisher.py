"""Step 11: one visible write, settled when its answer is lost, believed only when seen (P4-P11)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from perago.attempt.progress import AttemptProgress
from perago.errors import (
    RESTART,
    LostRaceError,
    OutcomeUnknownError,
    PublishFenceError,
    StoreUnavailableError,
)
from perago.ports import Clock, Publication, Published, Store
from perago.protocol import events
from perago.protocol.kinds import FenceKind
from perago.protocol.publication import Decision, Keep, Refuse, Write, refuse_visible
from perago.protocol.recovery import Landed, Lost, settle
from perago.protocol.values import Commit, WorkspaceInput

POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Target:
    """The branch to move, under which fence, and how long it may take."""

    workspace: WorkspaceInput
    root: str
    fence: FenceKind
    timeout_seconds: float
    margin_seconds: float
    execution_id: str

    def fenced(self, reason: str, remedy: str = "") -> PublishFenceError:
        """Build the refusal every fence gives (P9)."""
        where = f"branch {self.workspace.branch!r} of {self.workspace.repository!r}"
        return PublishFenceError(f"{where} is fenced: {reason}", remedy=remedy or RESTART)


@dataclass(frozen=True, slots=True)
class Publisher:
    """Carries out decisions; decides nothing itself."""

    store: Store
    clock: Clock
    progress: AttemptProgress
    seen: Callable[[str], object] = lambda _: None
    """Told of a write once it was verified."""

    def carry_out(
        self, target: Target, decision: Decision, message: str, metadata: Mapping[str, str]
    ) -> Published:
        """Do what was decided, once."""
        if isinstance(decision, Refuse):
            raise target.fenced(decision.reason, decision.remedy)
        if isinstance(decision, Keep):
            return Published(decision.head, target.fence)
        repository, branch = target.workspace.repository, target.workspace.branch
        publication = Publication(
            repository=repository,
            branch=branch,
            decision=decision,
            fence=target.fence,
            message=message,
            metadata=metadata,
            timeout_seconds=target.timeout_seconds,
        )
        self.progress.ignore_log_failures()  # From here on something may be visible.
        try:
            published = self.store.apply(publication)
        except OutcomeUnknownError as error:
            published = self._settle(target, decision, error)
        self.progress.event(events.Applied(published.ref))
        self._verify(target, decision, published)
        self.seen(published.ref)
        self.progress.event(events.PublicationVerified(published.ref, published.fence))
        return published

    def _settle(self, target: Target, decision: Write, lost: OutcomeUnknownError) -> Published:
        """Read the target until it answers or the margin is over; never send again (P6, P11)."""
        deadline = self.clock.monotonic() + target.margin_seconds
        self.progress.event(events.OutcomeUnknown(str(lost)))
        while True:
            state = None
            try:
                # A read that hangs must not outlast the margin, nor be the only one in it.
                left = max(deadline - self.clock.monotonic(), POLL_SECONDS)
                head = self.store.head(
                    target.workspace.repository, target.workspace.branch, left / 2
                )
                state = settle(decision, head, target.execution_id)
            except StoreUnavailableError as error:
                self.progress.event(events.Warned("the target cannot be read", str(error)))
            if isinstance(state, Landed):
                return Published(state.ref, target.fence)
            if isinstance(state, Lost):
                raise LostRaceError(
                    f"branch {target.workspace.branch!r} was moved to {state.head} by another",
                    remedy=RESTART,
                ) from lost
            if self.clock.monotonic() >= deadline:
                raise lost
            self.clock.sleep(POLL_SECONDS)

    def _verify(self, target: Target, decision: Write, published: Published) -> None:
        """Do not call it a success before it is seen (P5)."""
        repository = target.workspace.repository
        head = self.store.head(repository, target.workspace.branch)
        problem = refuse_visible(decision, published.ref, head)
        source = getattr(decision, "source", None)
        if not problem and source is not None and not self._same(repository, source, head):
            other = self.store.diff(repository, source, head.id, target.root)
            problem = f"published content differs from what was staged: {other}" if other else None
        if problem:
            raise PublishFenceError(f"publication cannot be verified: {problem}", remedy=RESTART)

    def _same(self, repository: str, source: str, head: Commit) -> bool:
        """Tell without a comparison whether a head holds what was staged, where that is known."""
        if source == head.id:
            return True
        same = bool(head.tree) and self.store.commit(repository, source).tree == head.tree
        if same:
            self.store.note_same(repository, head.id, source)
        return same
