"""What an execution tells the ledger, and what it takes from it (K5).

The ledger is asked and told as far as it answers: one that does not is logged once, and the
execution goes on without it. It is never a reason to fail, and never a reason to write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

from perago.attempt.progress import AttemptProgress
from perago.errors import LedgerUnavailableError, StoreError
from perago.ports import Clock, Ledger, Store
from perago.protocol import events
from perago.protocol.adoption import ADOPT, INTEND, Adopt, Posting, Terms, judge, params_digest
from perago.protocol.job import split_input
from perago.protocol.publication import Decision, Keep, Refuse
from perago.protocol.values import Claim, Commit, StagedWorkspace, WorkspaceInput
from perago.tasks.definition import TaskDefinition

T = TypeVar("T")


class StepLedger:
    """The ledger as one execution uses it; without a ledger nothing of it does anything.

    What is written is a value that each step hands on: ``intend``, ``decide``, ``land``.
    """

    def __init__(
        self,
        ledger: Ledger | None,
        claim: Claim,
        task: TaskDefinition,
        workspace: WorkspaceInput,
        progress: AttemptProgress,
        clock: Clock,
    ) -> None:
        self._ledger = ledger
        self._claim = claim
        self._task = task
        self._workspace = workspace
        self._progress = progress
        self._clock = clock

    # --- before the body ---------------------------------------------------------------------

    def promising(self, store: Store) -> bool:
        """Tell whether a fence is worth asking: whether the head is recorded of this very step."""
        if self._ledger is None:
            return False
        try:
            head = store.head(self._workspace.repository, self._workspace.branch)
        except StoreError:
            return False  # Whoever needs the branch will say what is wrong with it.
        return head.id != self._workspace.ref and self._judged(head) is not None

    def adopt(self, head: Commit) -> Posting | None:
        """Take a recorded publication of this step, if the head around the fence is that (F3)."""
        found = self._judged(head)
        if found is None:
            return None
        intent = self._intent(found.output, found.staged)
        taken = self.land(replace(intent, decision=ADOPT, head=head.id), head.id)
        where, earlier = self._workspace, found.attempt
        self._progress.event(
            events.PublicationDecided(ADOPT, where.repository, where.branch, head.id)
        )
        self._progress.event(
            events.Adopted(head.id, found.execution_id, earlier.task_id, earlier.retry_count)
        )
        return taken

    def _judged(self, head: Commit) -> Posting | None:
        key = self._claim.attempt.logical_task_key
        postings = self._asked(lambda ledger: ledger.of_step(key))
        if not postings:
            return None
        verdict = judge(self._terms, self._claim.attempt, head.id, postings)
        if isinstance(verdict, Adopt):
            return verdict.posting
        self._progress.event(events.NotAdopted(head.id, verdict.reason))
        return None

    # --- around the publication --------------------------------------------------------------

    def intend(
        self, output: Mapping[str, object], staged: StagedWorkspace | None
    ) -> Posting | None:
        """Write down that something is about to be published, with the output that goes with it."""
        if self._ledger is None:
            return None
        return self._post(self._intent(output, staged.commit if staged else None))

    def decide(self, intent: Posting | None, decision: Decision, head: Commit) -> Posting | None:
        """Return the posting with its decision; one that writes nothing is written down at once."""
        if intent is None:
            return None
        decided = replace(intent, decision=type(decision).__name__.lower(), head=head.id)
        if isinstance(decision, Keep):
            return self.land(decided, head.id)
        return self._post(decided) if isinstance(decision, Refuse) else decided

    def land(self, decided: Posting | None, ref: str) -> Posting | None:
        """Write down what was seen on the branch (P5)."""
        if decided is None:
            return None
        return self._post(replace(decided, ref=ref, landed_at=self._clock.now()))

    def _intent(self, output: Mapping[str, object], staged: str | None) -> Posting:
        return Posting(
            execution_id=self._claim.execution_id,
            attempt=self._claim.attempt,
            terms=self._terms,
            decision=INTEND,
            head="",
            staged=staged,
            output=output,
            intended_at=self._clock.now(),
        )

    def _post(self, posting: Posting) -> Posting:
        self._asked(lambda ledger: ledger.post(posting))
        return posting

    @cached_property
    def _terms(self) -> Terms:
        spec, attempt = self._task.workspace, self._claim.attempt
        key, ref = attempt.logical_task_key, self._workspace.ref
        _, params = split_input(self._claim.input, workspace=True)
        return Terms(
            logical_task_key=key,
            repository=self._workspace.repository,
            branch=self._workspace.branch,
            input_ref=ref,
            params=params_digest(key, ref, params),
            task=self._task.name,
            prefix=spec.prefix if spec else "",
            fence=spec.fence if spec else "head",
            code=self._task.body.code,
        )

    def _asked(self, ask: Callable[[Ledger], T]) -> T | None:
        """Ask or tell the ledger; one that fails once is left alone by this execution."""
        if self._ledger is None:
            return None
        try:
            return ask(self._ledger)
        except LedgerUnavailableError as error:
            self._ledger = None
            self._progress.event(events.Warned("the ledger cannot be used", str(error)))
            return None
