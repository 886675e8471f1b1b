"""What was published on a branch, by whom, and what was replaced on the way (K4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from perago.observe.events import Event, EventLog
from perago.ports import Store
from perago.protocol.publication import is_intent
from perago.protocol.values import ChangeSet, Commit


@dataclass(frozen=True, slots=True)
class Replaced:
    """A publication that left the history: its task was never accepted as completed."""

    ref: str
    by_execution: str
    kind: str
    at: float


@dataclass(frozen=True, slots=True)
class Entry:
    """One commit of the branch, with what it changed and what it displaced."""

    commit: Commit
    change: ChangeSet
    replaced: Sequence[Replaced] = field(default=())

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


def publications(
    store: Store, events: EventLog, repository: str, branch: str, limit: int
) -> list[Entry]:
    """Read a branch by first parents, newest first."""
    displaced = _displaced(events.decisions(), repository, branch)
    found = []
    for commit in islice(store.history(repository, branch), limit):
        change = ChangeSet()
        if commit.parent:
            change = store.diff(repository, commit.parent, commit.id, "")
        execution = commit.metadata.get("perago.execution_id", "")
        entry = Entry(commit, change, [r for r in displaced if r.by_execution == execution])
        found.append(replace(entry, replaced=()) if entry.unfinished else entry)
    return found


def relocations(events: EventLog, repository: str, branch: str) -> list[Replaced]:
    """Return the publications that a no-op retry took back (N2): no commit tells of them."""
    found = _displaced(events.decisions(), repository, branch)
    return [replaced for replaced in found if replaced.kind == "relocate"]


def _displaced(decisions: Iterable[Event], repository: str, branch: str) -> list[Replaced]:
    return [
        Replaced(str(event.facts["head"]), event.execution_id, str(event.facts["kind"]), event.at)
        for event in decisions
        if event.facts.get("kind") in {"replace", "relocate"}
        and (event.facts.get("repository"), event.facts.get("branch")) == (repository, branch)
    ]
