"""The event log: what every execution did and when, in one SQLite file.

It is written before the thing it speaks of becomes visible (a decision) or right after it (a
publication), so that replaced publications can be explained long after they left the history.
Between those points the rows of an attempt are gathered: one transaction for several of them.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from perago.errors import EventLogError
from perago.ports import Clock
from perago.protocol.event_format import read
from perago.protocol.events import Claimed, Event, Moved, PublicationDecided, Warned, cut
from perago.protocol.values import Attempt, Claim
from perago.redaction import hidden_facts, hide
from perago.sqlite import opened

_SCHEMA = """
CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    execution_id TEXT NOT NULL,
    workflow_instance_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    retry_count INTEGER NOT NULL,
    reference_task_name TEXT NOT NULL,
    task_def_name TEXT NOT NULL,
    name TEXT NOT NULL,
    facts TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS by_execution ON events (execution_id);
CREATE INDEX IF NOT EXISTS claims_by_task ON events (task_id) WHERE name = 'claimed';
CREATE INDEX IF NOT EXISTS claims_by_workflow ON events (workflow_instance_id)
    WHERE name = 'claimed';
CREATE INDEX IF NOT EXISTS claims_by_time ON events (at) WHERE name = 'claimed';
CREATE INDEX IF NOT EXISTS displacing ON events (
    json_extract(facts, '$.repository'), json_extract(facts, '$.branch')
) WHERE name = 'decision' AND json_extract(facts, '$.kind') IN ('replace', 'relocate', 'adopt');
DROP INDEX IF EXISTS decisions;
DROP INDEX IF EXISTS by_task;
DROP INDEX IF EXISTS by_workflow;
DROP INDEX IF EXISTS by_name;
"""
# An index of everything costs every row; of one row per attempt, next to nothing. The last four
# are of earlier versions.
_DISPLACING = (  # As the index says it: SQLite compares the words.
    "name = 'decision' AND json_extract(facts, '$.kind') IN ('replace', 'relocate', 'adopt')"
    " AND json_extract(facts, '$.repository') = ? AND json_extract(facts, '$.branch') = ?"
)
_COLUMNS = (
    "at, execution_id, workflow_instance_id, task_id, retry_count, reference_task_name,"
    " task_def_name, name, facts"
)
_INSERT = f"INSERT INTO events ({_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?)"  # noqa: S608 - our words
CONDITIONS = frozenset(
    f"{column} {sign} ?"
    for column, signs in {
        "execution_id": "=",
        "workflow_instance_id": "=",
        "task_id": "=",
        "retry_count": "=",
        "reference_task_name": "=",
        "task_def_name": "=",
        "at": "< <= > >=",
    }.items()
    for sign in signs.split()
)
"""What :meth:`EventLog.by_execution` may be asked of a claim."""
_SAMPLE = 200
_MOST_ASKED = 500
"""So many values are in one question; SQLite bounds them."""
_LONGEST_GATHERED_SECONDS = 1.0
_MOST_GATHERED = 500
_WAIT_SECONDS = 30.0
_SHORT_WAIT_SECONDS = 2.0
_MOST_KEPT = 2000
"""So many rows are kept for a log that cannot be written; durable ones always."""
_Row = tuple[float, str, str, str, int, str, str, str, str]


@dataclass(frozen=True, slots=True)
class Recorded:
    """One event of one execution, as the log has it."""

    at: float
    execution_id: str
    attempt: Attempt
    event: Event


@dataclass(frozen=True, slots=True)
class Decided(Recorded):
    """What an execution decided to do to its branch."""

    event: PublicationDecided


class EventLog:
    """Append and look up; several processes at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()

    def append(self, rows: Sequence[_Row], wait_seconds: float = _WAIT_SECONDS) -> None:
        """Write rows in one transaction, in their order, or raise ``EventLogError``."""
        connection = self._connection(wait_seconds)
        try:
            connection.execute(f"PRAGMA busy_timeout={round(wait_seconds * 1000)}")
            # Taking the lock at once: a reader that turns writer may be refused without waiting.
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(_INSERT, rows)
            connection.execute("COMMIT")
        except (sqlite3.Error, OSError, ValueError, OverflowError) as error:
            self.close()  # Rolls back; a file that was replaced is found by the next one.
            raise EventLogError(
                f"event log {self._path} cannot be written: {error}",
                remedy="check the space and the permissions of PERAGO_HOME",
            ) from error

    def of_execution(self, execution_id: str) -> list[Recorded]:
        """Return one execution's events in order."""
        return list(self._select("execution_id = ?", execution_id))

    def of_executions(self, executions: Sequence[str]) -> Iterator[Recorded]:
        """Yield the events of some executions, in order."""
        for start in range(0, len(executions), _MOST_ASKED):
            part = executions[start : start + _MOST_ASKED]
            yield from self._select(f"execution_id IN ({', '.join('?' * len(part))})", *part)

    def of_workflow(self, workflow_instance_id: str) -> list[Recorded]:
        """Return the events of every attempt of one workflow run, in order."""
        claimed = (
            "SELECT execution_id FROM events WHERE name = 'claimed' AND workflow_instance_id = ?"
        )
        return list(self._select(f"execution_id IN ({claimed})", workflow_instance_id))

    def displacing(self, repository: str, branch: str) -> list[Decided]:
        """Return what attempts decided about publications of others on a branch, in order (K4).

        Those are few: a retry replaces, takes back or adopts what an earlier attempt left.
        """
        return [
            Decided(one.at, one.execution_id, one.attempt, one.event)
            for one in self._select(_DISPLACING, repository, branch)
            if isinstance(one.event, PublicationDecided)
        ]

    def last(self) -> int:
        """Return the number of the newest row; 0 when there is none."""
        if not self._path.exists():
            return 0
        found = self._connection().execute("SELECT MAX(id) FROM events").fetchone()
        return int(found[0] or 0)

    def count_claims(self) -> int:
        """Count the executions."""
        if not self._path.exists():
            return 0
        query = "SELECT COUNT(*) FROM events WHERE name = 'claimed'"
        return int(self._connection().execute(query).fetchone()[0])

    def newest(self, executions: int) -> tuple[int, float] | None:
        """Return the row and the time of the claim with which the newest executions begin."""
        if not self._path.exists():
            return None
        query = (
            "SELECT id, at FROM (SELECT id, at FROM events WHERE name = 'claimed'"
            " ORDER BY at DESC LIMIT ?) ORDER BY at LIMIT 1"
        )
        found = self._connection().execute(query, (executions,)).fetchone()
        return (int(found[0]), float(found[1])) if found else None

    def by_execution(
        self, after: int, until: int, wanted: Mapping[str, str | int | float] | None = None
    ) -> Iterator[list[Recorded]]:
        """Yield the events of each execution that was claimed in rows after one up to another.

        ``wanted`` holds conditions of :data:`CONDITIONS` on the claim. One execution at a time is
        in memory.
        """
        wanted = wanted or {}
        claimed = " AND ".join(("name = 'claimed'", "id > ?", "id <= ?", *wanted))
        where = f"execution_id IN (SELECT execution_id FROM events WHERE {claimed})"  # noqa: S608 - our words
        rows = self._select(where, after, until, *wanted.values(), order="execution_id, id")
        for _, found in groupby(rows, lambda one: one.execution_id):
            yield list(found)

    def executions(self, prefix: str) -> list[str]:
        """Find execution ids by execution id, task id or workflow id, whole or begun."""
        if not self._path.exists():
            return []
        found = self._connection().execute(
            "SELECT execution_id, MIN(id) FROM ("
            " SELECT execution_id, id FROM events WHERE execution_id BETWEEN ?1 AND ?2"
            " UNION ALL SELECT execution_id, id FROM events"
            " WHERE name = 'claimed' AND task_id BETWEEN ?1 AND ?2"
            " UNION ALL SELECT execution_id, id FROM events"
            " WHERE name = 'claimed' AND workflow_instance_id BETWEEN ?1 AND ?2"
            ") GROUP BY execution_id ORDER BY MIN(id)",
            (prefix, prefix + chr(sys.maxunicode)),
        )
        return [row[0] for row in found]

    def close(self) -> None:
        """Close this thread's connection."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            self._local.connection = None
            connection.close()

    def _select(self, where: str, *values: str | float, order: str = "id") -> Iterator[Recorded]:
        if not self._path.exists():
            return
        rows: Iterable[_Row]
        query = f"SELECT {_COLUMNS} FROM events WHERE {where} ORDER BY {order}"  # noqa: S608 - our words
        rows = self._connection().execute(query, values)
        same, attempt = "", Attempt("", "", 0, "", "")
        for at, execution, workflow, task_id, retry, reference, definition, name, facts in rows:
            if execution != same:
                same = execution
                attempt = Attempt(workflow, task_id, retry, reference, definition)
            event = read(name, json.loads(facts) if facts != "{}" else {})
            yield Recorded(at, execution, attempt, event)

    def _connection(self, wait_seconds: float = _WAIT_SECONDS) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                connection = opened(self._path, wait_seconds, _prepare)
            except (OSError, sqlite3.Error) as error:
                raise EventLogError(
                    f"event log {self._path} cannot be opened: {error}",
                    remedy="check PERAGO_HOME and its permissions",
                ) from error
            self._local.connection = connection
        return connection


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA synchronous=NORMAL")
    # A checkpoint is what waits for the disk: fewer of them.
    connection.execute("PRAGMA wal_autocheckpoint=4000")
    connection.executescript(_SCHEMA)


class AttemptJournal:
    """The journal of one execution: every event goes to the log, and to whoever watches.

    A killed process loses the rows since the last point that had to be durable, never one of those.
    A log that failed once is left alone until ``flush`` or the last event: whoever watches hears
    of it, and of everything else.
    """

    def __init__(
        self,
        log: EventLog,
        claim: Claim,
        clock: Clock,
        watch: Callable[[dict[str, object]], None] = lambda _: None,
        store: str | None = None,
    ) -> None:
        """``store`` is the kind of store that it works on: repositories of two may share a name."""
        self._log = log
        self._claim = claim
        self._clock = clock
        self._watch = watch
        self._store = store
        self._percent = -1
        self._gathered: list[_Row] = []
        self._failed = False
        self._wait_seconds = _WAIT_SECONDS
        # A body may record metrics from threads of its own.
        self._gathering = threading.Lock()

    def event(self, event: Event) -> None:
        """Record that a point was reached; also told when it cannot be recorded."""
        if isinstance(event, Claimed | PublicationDecided) and self._store:
            event = replace(event, store=self._store)
        facts = hidden_facts(event.facts)
        failure = None
        with self._gathering:
            if event.settles:
                self._wait_seconds = _SHORT_WAIT_SECONDS
            try:
                self._gather(event, facts)
                due = event.durable or self._overdue()
                if event.last or (due and not self._failed):
                    self._write()
            except Exception as error:  # noqa: BLE001 - raised below
                failure = error
        self._say(event.title, facts)
        if failure is not None:
            self._complain(failure)
            raise failure

    def flush(self) -> None:
        """Write what was gathered: another process goes on with this attempt. Never fails."""
        with self._gathering:
            try:
                self._wait_seconds = _SHORT_WAIT_SECONDS
                self._write()
            except EventLogError as error:
                failure = error
            else:
                return
        self._complain(failure)

    def _gather(self, event: Event, facts: Mapping[str, object]) -> None:
        if len(self._gathered) < _MOST_KEPT or event.durable:
            self._gathered.append(_row(self._clock.now(), self._claim, event.title, facts))

    def _write(self) -> None:
        if self._gathered:
            self._log.append(self._gathered, self._wait_seconds)
            self._gathered = []

    def _complain(self, failure: Exception) -> None:
        """Tell whoever watches, once: the log itself cannot say it."""
        if not self._failed:
            self._failed = True
            warned = Warned("the event log cannot be written", str(failure))
            self._say(warned.title, warned.facts)

    def _overdue(self) -> bool:
        waited = self._gathered[-1][0] - self._gathered[0][0]
        return waited >= _LONGEST_GATHERED_SECONDS or len(self._gathered) >= _MOST_GATHERED

    def progress(self, phase: str, done: int, total: int) -> None:
        """Pass on every whole percent; more would be noise."""
        percent = 100 * done // total if total else 100
        if percent != self._percent:
            self._percent = percent
            moved = Moved(str(phase), done, total)
            self._say(moved.title, moved.facts)

    def _say(self, name: str, facts: Mapping[str, object]) -> None:
        self._watch({"event": name, "execution_id": self._claim.execution_id, **facts})


def _row(at: float, claim: Claim, name: str, facts: Mapping[str, object]) -> _Row:
    """Make the row of one event; long lists are cut, their length is kept."""
    attempt = claim.attempt
    return (
        at,
        claim.execution_id,
        attempt.workflow_instance_id,
        attempt.task_id,
        attempt.retry_count,
        attempt.reference_task_name,
        attempt.task_def_name,
        name,
        _written({key: _short(value) for key, value in facts.items()}),
    )


_PLAIN = (str, int, float, type(None))


def _written(facts: Mapping[str, object]) -> str:
    try:
        return json.dumps(facts, default=_other)
    except (ValueError, TypeError, RecursionError) as error:  # An author's values: no JSON.
        kept = {key: value for key, value in facts.items() if isinstance(value, _PLAIN)}
        left_out = sorted(facts.keys() - kept.keys())
        return json.dumps({**kept, "unwritable": left_out, "why": type(error).__name__})


def _other(value: object) -> str:
    """Write down what JSON has no word for."""
    return hide(str(value))


def _short(value: object) -> object:
    return cut(value, _SAMPLE) if isinstance(value, list | tuple) else value
