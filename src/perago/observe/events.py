"""The event log: what every execution did and when, in one SQLite file.

It is written before the thing it speaks of becomes visible (a decision) or right after it (a
publication), so that replaced publications can be explained long after they left the history.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from perago.errors import UsageError
from perago.ports import Clock
from perago.protocol.values import Attempt, Claim

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
CREATE INDEX IF NOT EXISTS by_task ON events (task_id);
CREATE INDEX IF NOT EXISTS by_workflow ON events (workflow_instance_id);
CREATE INDEX IF NOT EXISTS by_name ON events (name);
"""
_COLUMNS = (
    "at, execution_id, workflow_instance_id, task_id, retry_count, reference_task_name,"
    " task_def_name, name, facts"
)
_SAMPLE = 200


@dataclass(frozen=True, slots=True)
class Event:
    """One recorded point of one execution."""

    at: float
    execution_id: str
    attempt: Attempt
    name: str
    facts: Mapping[str, object]


class EventLog:
    """Append and look up; several processes at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()

    def append(self, at: float, claim: Claim, name: str, facts: Mapping[str, object]) -> None:
        """Write one event; long lists are cut, their length is kept."""
        attempt = claim.attempt
        self._connection().execute(
            f"INSERT INTO events ({_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?)",  # noqa: S608 - as below
            (
                at,
                claim.execution_id,
                attempt.workflow_instance_id,
                attempt.task_id,
                attempt.retry_count,
                attempt.reference_task_name,
                attempt.task_def_name,
                name,
                json.dumps({key: _short(value) for key, value in facts.items()}, default=str),
            ),
        )

    def of_execution(self, execution_id: str) -> list[Event]:
        """Return one execution's events in order."""
        return list(self._select("execution_id = ?", execution_id))

    def of_workflow(self, workflow_instance_id: str) -> list[Event]:
        """Return the events of every attempt of one workflow run, in order."""
        return list(self._select("workflow_instance_id = ?", workflow_instance_id))

    def named(self, *names: str) -> list[Event]:
        """Return all events with one of these names, in order."""
        marks = ",".join("?" * len(names))
        return list(self._select(f"name IN ({marks})", *names))

    def executions(self, prefix: str) -> list[str]:
        """Find execution ids by execution id, task id or workflow id, whole or begun."""
        if not self._path.exists():
            return []
        found = self._connection().execute(
            "SELECT execution_id, MIN(id) FROM events WHERE execution_id LIKE ?1"
            " OR task_id LIKE ?1 OR workflow_instance_id LIKE ?1"
            " GROUP BY execution_id ORDER BY MIN(id)",
            (prefix.replace("%", "").replace("_", r"_") + "%",),
        )
        return [row[0] for row in found]

    def close(self) -> None:
        """Close this thread's connection."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    def _select(self, where: str, *values: str) -> Iterator[Event]:
        if not self._path.exists():
            return
        rows: Iterable[tuple[float, str, str, str, int, str, str, str, str]]
        query = f"SELECT {_COLUMNS} FROM events WHERE {where} ORDER BY id"  # noqa: S608 - our words
        rows = self._connection().execute(query, values)
        for at, execution, workflow, task_id, retry, reference, definition, name, facts in rows:
            attempt = Attempt(workflow, task_id, retry, reference, definition)
            yield Event(at, execution, attempt, name, json.loads(facts))

    def _connection(self) -> sqlite3.Connection:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                connection = sqlite3.connect(self._path, timeout=30, isolation_level=None)
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=NORMAL")
                connection.executescript(_SCHEMA)
            except (OSError, sqlite3.Error) as error:
                raise UsageError(
                    f"event log {self._path} cannot be opened: {error}",
                    remedy="check PERAGO_HOME and its permissions",
                ) from error
            self._local.connection = connection
        return connection


class AttemptJournal:
    """The journal of one execution: every event goes to the log, and to whoever watches."""

    def __init__(
        self,
        log: EventLog,
        claim: Claim,
        clock: Clock,
        watch: Callable[[dict[str, object]], None] = lambda _: None,
    ) -> None:
        self._log = log
        self._claim = claim
        self._clock = clock
        self._watch = watch
        self._percent = -1

    def event(self, name: str, /, **facts: object) -> None:
        """Record that a point was reached."""
        self._log.append(self._clock.now(), self._claim, name, facts)
        self._watch({"event": name, "execution_id": self._claim.execution_id, **facts})

    def progress(self, phase: str, done: int, total: int) -> None:
        """Pass on every whole percent; more would be noise."""
        percent = 100 * done // total if total else 100
        if percent != self._percent:
            self._percent = percent
            self._watch(
                {
                    "event": "progress",
                    "execution_id": self._claim.execution_id,
                    "phase": str(phase),
                    "done": done,
                    "total": total,
                }
            )


def _short(value: object) -> object:
    if isinstance(value, list | tuple) and len(value) > _SAMPLE:
        return [*value[:_SAMPLE], f"... {len(value) - _SAMPLE} more"]
    return value
