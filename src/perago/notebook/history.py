"""The publications of a branch, as a sequence that a notebook shows as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, overload

from perago.app.local import Home
from perago.history.publications import PublicationEntry, publications
from perago.notebook import shown
from perago.notebook.files import RepositoryVersion
from perago.ports import Store

_LIMIT: Final = 50
_HEADINGS: Final = ("commit", "when", "step", "retry", "added", "changed", "removed")


@dataclass(frozen=True, slots=True)
class PublicationSummary:
    """One commit; ``step`` is empty where no task made it."""

    commit: str
    at: datetime
    step: str
    message: str
    retry: int
    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]


class Log(Sequence[PublicationSummary]):
    """Publications, newest first."""

    def __init__(self, entries: Sequence[PublicationSummary]) -> None:
        self._entries = tuple(entries)

    @overload
    def __getitem__(self, index: int) -> PublicationSummary: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[PublicationSummary]: ...

    def __getitem__(self, index: int | slice) -> PublicationSummary | Sequence[PublicationSummary]:
        return self._entries[index]

    def __len__(self) -> int:
        return len(self._entries)

    def _rows(self) -> list[tuple[object, ...]]:
        return [
            (
                each.commit[:12],
                each.at.astimezone().strftime("%Y-%m-%d %H:%M:%S"),
                each.step or each.message,
                each.retry if each.step else "",
                *map(len, (each.added, each.changed, each.removed)),
            )
            for each in self._entries
        ]

    def __repr__(self) -> str:
        return shown.text_table(_HEADINGS, self._rows())

    def _repr_html_(self) -> str:
        return shown.html_table(_HEADINGS, self._rows())


def log_of(home: Home, store: Store, place: RepositoryVersion) -> Log:
    """Read the branch; what others published behind the run is left out."""
    entries = publications(store, home.events, place.repository, place.branch, _LIMIT)
    ids = [entry.commit.id for entry in entries]
    first = ids.index(place.ref) if place.ref in ids else 0
    return Log([*map(_publication, entries[first:])])


def _publication(entry: PublicationEntry) -> PublicationSummary:
    commit, change = entry.commit, entry.change
    retry = commit.metadata.get("perago.retry_count", "0")
    return PublicationSummary(
        commit=commit.id,
        at=datetime.fromtimestamp(commit.created_at, UTC),
        step=entry.step,
        message=commit.message,
        retry=int(retry) if retry.isdigit() else 0,
        added=tuple(change.added),
        changed=tuple(change.changed),
        removed=tuple(change.removed),
    )
