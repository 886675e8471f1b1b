"""Fence ``hard`` on lakeFS: the server checks the head and moves the branch in one act (K3).

A merge carries the head it expects, and the action of :mod:`~perago.stores.lakefs.action` refuses
it on any other. A replacement is two such acts::

    A --- H      (i) merge C, not squashed, expecting H     A --- H --- M     (ii) hard-reset the
     `--- C      =>  M has the parents H and C               `--- C ---'      branch to "^2": C

The second parent is looked up by the server inside the update, so (ii) is a condition as well: on
a head with one parent it changes nothing. Whoever meets a half-done replacement completes it.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from perago.errors import (
    RESTART,
    LostRaceError,
    OutcomeUnknownError,
    PeragoError,
    PermissionRefusedError,
    PublishFenceError,
    StoreError,
    StoreUnavailableError,
)
from perago.ports import Publication, Published
from perago.protocol.publication import Merge, is_intent
from perago.protocol.recovery import HalfReplaced, Next, PublishAnswer, proceed, settle, wanted_by
from perago.protocol.values import Commit
from perago.stores.lakefs.client import Ask, LakeFSClient
from perago.stores.lakefs.errors import Call
from perago.stores.lakefs.moves import hard_reset, merge
from perago.transfer.wire import path_of

PAUSE_SECONDS = 0.2
LEAST_SECONDS = 0.5
FINISH_TRIES = 5


class Head(Protocol):
    """Reads the head of a branch, never from a cache."""

    def __call__(
        self, repository: str, branch: str, timeout_seconds: float | None = None
    ) -> Commit:
        """Ask the server."""


class HardFence:
    """Moves branches on condition of their heads."""

    def __init__(self, client: LakeFSClient, head: Head) -> None:
        self._client = client
        self._head = head

    def apply(self, publication: Publication) -> Published:
        """Carry out a decision; a lost answer is settled by reading, then by sending again."""
        if not isinstance(publication.decision, Merge):
            # To itself: what is not permitted is better refused now than after half of it.
            ask = _reset(publication, publication.branch)
            self._client.ask(replace(ask, call=Call.PRIVATE))
        move = _Move(self._client, self._head, publication)
        try:
            ref = move.carry_out()
        except LostRaceError:
            with suppress(PeragoError):
                self.finish(publication.repository, publication.branch)
            raise
        held = move.checked and self._ran(publication.repository, move.checked)
        return Published(ref, "hard" if held else "head")

    def finish(self, repository: str, branch: str) -> Commit:
        """Complete a replacement that was left half done, if there is one; return the head."""
        why = ""
        for _ in range(FINISH_TRIES):
            head = self._head(repository, branch)
            if not is_unfinished(head):
                return head
            try:
                self._client.ask(hard_reset(repository, branch, f"{branch}^2"))
            except PermissionRefusedError:
                raise
            except StoreError as error:  # Others meet it too, and one of them is the quickest.
                why = error.message
                time.sleep(PAUSE_SECONDS)
        raise PublishFenceError(
            f"branch {branch!r} of {repository!r} stays on unfinished replacements ({why})",
            remedy="run the task again; 'perago gc --repo' with --delete completes them, too",
        )

    def _ran(self, repository: str, commit: str) -> bool:
        """Return whether the server really ran the action: hooks can be switched off silently."""
        path = path_of("repositories", repository, "actions", "runs")
        query = {"commit": commit, "amount": 1}
        try:
            found = self._client.ask(Ask("read action runs", "GET", path, query=query))
        except StoreError:
            return False
        return any(run["status"] == "completed" for run in found["results"])


class _Move:
    """One publication on its way."""

    def __init__(self, client: LakeFSClient, head: Head, publication: Publication) -> None:
        self._client = client
        self._head = head
        self._publication = publication
        self._resetting = False
        self._doubt: OutcomeUnknownError | None = None
        self.checked = ""
        """The commit that the action has seen, once it is known."""
        self._until = self._budget()

    def carry_out(self) -> str:
        """Send, look, and go on from there until it is settled or time is up."""
        while True:
            try:
                landed = self._send()
            except (StoreError, PublishFenceError) as error:
                landed = self._settle(error)
            if landed:
                return landed

    def _settle(self, why: StoreError | PublishFenceError) -> str:
        """Look what became of it; returns the new head, or nothing when there is more to send."""
        if isinstance(why, OutcomeUnknownError):
            self._doubt = self._doubt or why
        head = self._look(why)
        said = self._publication.metadata.get("perago.execution_id", "")
        state = settle(self._publication.decision, head, said)
        match proceed(state, _answer(why), resetting=self._resetting):
            case Next.DONE:
                if isinstance(self._publication.decision, Merge):
                    self.checked = head.id
                return head.id
            case Next.LOST:
                raise self._lost(head) from why
            case Next.RESET if isinstance(state, HalfReplaced) and not self._resetting:
                self._intended(state.intent)
            case Next.SEND | Next.RESET if time.monotonic() < self._until:
                time.sleep(PAUSE_SECONDS)
            case _:
                raise why
        return ""

    def _send(self) -> str:
        """Send what is due; returns the new head when that was all."""
        if self._resetting:
            self._client.ask(_reset(self._publication, f"{self._publication.branch}^2"))
            return wanted_by(self._publication.decision)
        left = max(self._until - time.monotonic(), LEAST_SECONDS)
        made = str(self._client.ask(_merge(self._publication, left))["reference"])
        if isinstance(self._publication.decision, Merge):
            self.checked = made
            return made
        self._intended(made)
        return ""

    def _intended(self, intent: str) -> None:
        """Know that the first half has landed; the second has its own time."""
        self.checked = intent
        self._resetting = True
        self._until = self._budget()

    def _budget(self) -> float:
        return time.monotonic() + self._publication.timeout_seconds

    def _look(self, why: PeragoError) -> Commit:
        """Read the target; when it cannot be read, all that was doubtful stays so."""
        where = self._publication
        try:
            return self._head(where.repository, where.branch, where.timeout_seconds)
        except StoreUnavailableError as error:
            raise self._doubt or why from error

    def _lost(self, head: Commit) -> LostRaceError:
        where = self._publication
        return LostRaceError(
            f"branch {where.branch!r} of {where.repository!r} is at {head.id}, "
            f"expected {where.decision.head}",
            remedy=RESTART,
        )


def _answer(error: StoreError | PublishFenceError) -> PublishAnswer:
    if isinstance(error, OutcomeUnknownError):
        return PublishAnswer.UNKNOWN
    return PublishAnswer.RACE if isinstance(error, LostRaceError) else PublishAnswer.REFUSED


def refuse_relocation(to: Commit) -> None:
    """Refuse to move a branch back to a merge: a reset to "^2" that comes twice would go on to it.

    A staging commit has one parent, so a replacement never ends on a merge.
    """
    if len(to.parents) > 1:
        raise PublishFenceError(
            f"fence 'hard' does not move a branch back to {to.id}, which is a merge of"
            f" {len(to.parents)} commits",
            remedy=f"{RESTART}; merge with --squash",
        )


def is_unfinished(head: Commit) -> bool:
    """Return whether a head is the first half of a replacement."""
    return is_intent(head) and len(head.parents) > 1


def _merge(publication: Publication, seconds: float) -> Ask:
    """Ask for a merge, or for the intent to replace: C wins, and may be equal to what it meets."""
    decision = publication.decision
    said = {**publication.metadata, "perago.expected_head": decision.head}
    body: dict[str, object] = {"message": publication.message}
    if isinstance(decision, Merge):
        body |= {"metadata": said, "squash_merge": True}
    else:
        said["perago.intent"] = "replace"
        body |= {"metadata": said, "strategy": "source-wins", "allow_empty": True}
    where = publication.repository, wanted_by(decision), publication.branch
    return merge(*where, body, seconds)


def _reset(publication: Publication, ref: str) -> Ask:
    where = publication.repository, publication.branch
    return hard_reset(*where, ref, publication.timeout_seconds)
