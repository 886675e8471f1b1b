"""Lists of runs, read a page at a time and without their definitions: there may be very many."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from perago.brokers.local.schema import NAME
from perago.errors import BrokerUnavailableError
from perago.sqlite import looked_at

_WAIT_SECONDS: Final = 5.0
_COLUMNS: Final = f"id, {NAME} as name, status, created_at, ended_at, reason, store"


@dataclass(frozen=True, slots=True)
class RunLine:
    """What a list shows of a run."""

    id: str
    name: str
    status: str
    created_at: float
    ended_at: float | None
    reason: str
    store: str

    @property
    def seconds(self) -> float | None:
        """How long it took; None while it goes on."""
        return None if self.ended_at is None else max(0.0, self.ended_at - self.created_at)


@dataclass(frozen=True, slots=True)
class RunQuery:
    """Which runs; an empty field leaves none out. ``before`` is the last run of the page before."""

    status: str = ""
    name: str = ""
    before: tuple[float, str] | None = None
    limit: int = 50


class RunListing:
    """Reads the state of local runs without ever keeping a writer waiting."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def page(self, query: RunQuery) -> Sequence[RunLine]:
        """List runs, newest first."""
        words, values = asked(query)
        with self._reading() as database:
            return [RunLine(*row) for row in database.execute(words, values)]

    def names(self) -> Sequence[str]:
        """List the names of workflows that were run, each found by one step of the index."""
        query = f"select min({NAME}) from runs where parent = '' and {NAME} > ?"  # noqa: S608 - our words
        found: list[str] = []
        with self._reading() as database:
            name = database.execute(query, ("",)).fetchone()[0]
            while name is not None:
                found.append(name)
                name = database.execute(query, (name,)).fetchone()[0]
        return found

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(looked_at(self._path, _WAIT_SECONDS)) as database:
                yield database
        except sqlite3.Error as error:
            raise BrokerUnavailableError(
                f"the state of local runs in {self._path} cannot be read: {error}",
                remedy="check that the file is there and is of this version of Perago",
            ) from error


def asked(query: RunQuery) -> tuple[str, list[str | float]]:
    """Write the statement; each is answered from an index, however many runs there are."""
    wanted = ["parent = ''"]  # Runs of sub workflows are on the page of theirs.
    values: list[str | float] = []
    if query.name:
        wanted.append(f"{NAME} = ?")
        values.append(query.name)
    if query.status:
        wanted.append("status = ?")
        values.append(query.status)
    if query.before is not None:
        wanted.append("(created_at, id) < (?, ?)")
        values += query.before
    words = (
        f"select {_COLUMNS} from runs where {' and '.join(wanted)}"  # noqa: S608 - our words
        " order by created_at desc, id desc limit ?"
    )
    return words, [*values, query.limit]
