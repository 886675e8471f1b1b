"""What was published on a branch, by whom, and what was replaced on the way (K4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Protocol

from perago.history.event_log import Decided, EventLog
from perago.protocol.adoption import ADOPT
from perago.protocol.publication import is_intent
from perago.protocol.values import Attempt, ChangeSet, Commit


@dataclass(frozen=True, slots=True)
class Replaced:
    """A publication that left the history: its task was never accepted as completed."""

    ref: str
    by_execution: str
    kind: str
    at: float


@dataclass(frozen=True, slots=True)
class Adoption:
    """A later attempt that completed with a publication it found (K5)."""

    by_execution: str
    attempt: Attempt
    at: float


@dataclass(frozen=True, slots=True)
class PublicationEntry:
    """One commit of the branch, with what it changed, what it displaced and who adopted it."""

    commit: Commit
    change: ChangeSet
    replaced: Sequence[Replaced] = field(default=())
    adopted: Sequence[Adoption] = field(default=())

    @property
    def step(self) -> str:
        """Name the workflow step that made it; empty for other commits."""
        return (
            self.commit.metadata.get("perago.logical_task_key", "")
            .partition(":")[2]
            .rpartition(":")[0]
        )

    @property
    def unfinished(self) -> bool:
        """Tell whether it is the first half of a replacement, which is no publication yet (K3)."""
        return len(self.commit.parents) > 1 and is_intent(self.commit)


class CommitReader(Protocol):
    """What is read of a store: commits, and what each of them changed."""

    def history(self, repository: str, ref: str) -> Iterator[Commit]:
        """Walk first parents, newest first."""

    def diff(self, repository: str, left: str, right: str, root: str) -> ChangeSet:
        """Compare two commits, or as much of them as is wanted."""


def publications(
    store: CommitReader, events: EventLog, repository: str, branch: str, limit: int, since: str = ""
) -> list[PublicationEntry]:
    """Read a branch by first parents, newest first; ``since`` is the commit to begin with."""
    decisions = events.displacing(repository, branch)
    displaced = _displaced(decisions)
    adoptions = _adoptions(decisions)
    found = []
    for commit in islice(store.history(repository, since or branch), limit):
        change = ChangeSet()
        if commit.parent:
            change = store.diff(repository, commit.parent, commit.id, "")
        execution = commit.metadata.get("perago.execution_id", "")
        gone = [replaced for replaced in displaced if replaced.by_execution == execution]
        entry = PublicationEntry(commit, change, gone, adoptions.get(commit.id, ()))
        found.append(replace(entry, replaced=()) if entry.unfinished else entry)
    return found


def relocations(
    events: EventLog, repository: str, branch: str, store: str | None = None
) -> list[Replaced]:
    """Return the publications that a no-op retry took back (N2): no commit tells of them.

    ``store`` is the kind of store that is looked at; another may have a repository so named.
    """
    decisions = events.displacing(repository, branch)
    found = _displaced(one for one in decisions if store in {None, one.event.store or store})
    return [replaced for replaced in found if replaced.kind == "relocate"]


def _displaced(decisions: Iterable[Decided]) -> list[Replaced]:
    return [
        Replaced(one.event.head, one.execution_id, one.event.kind, one.at)
        for one in decisions
        if one.event.kind in {"replace", "relocate"}
    ]


def _adoptions(decisions: Iterable[Decided]) -> dict[str, list[Adoption]]:
    found: dict[str, list[Adoption]] = {}
    for one in decisions:
        if one.event.kind == ADOPT:
            by = Adoption(one.execution_id, one.attempt, one.at)
            found.setdefault(one.event.head, []).append(by)
    return found
