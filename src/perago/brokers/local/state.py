"""State of local runs in one SQLite file.

Every transition is one transaction guarded by the status it starts from, so several processes
(the runner and its executors) use the file at once, and a kill at any instant leaves a state
from which the run goes on.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

from perago.brokers.local import schema
from perago.brokers.local.actions import (
    Action,
    AddSystemTask,
    Alert,
    CancelTask,
    ContinueWithErrors,
    EndRun,
    ReopenChild,
    Schedule,
    StartChild,
    TimeOut,
    UpdateSystemTask,
)
from perago.errors import BrokerUnavailableError, RuntimeConfigError, UsageError
from perago.protocol.values import Status
from perago.sqlite import opened
from perago.workflow.records import RunRecord, RunStatus, TaskRecord
from perago.workflow.subworkflow import end_by_parent
from perago.workflow.tasks import TaskKind

BUSY_TIMEOUT_SECONDS = 30.0
MOST_KNOWN: Final = 10_000
"""So many attempts are kept as they were read last."""
_MOVING: Final = (
    *("status", "generation", "input", "output", "reason"),
    *("started_at", "ended_at", "iteration"),
)
"""What changes of a task that the broker runs itself."""


class State:
    """The runs and task attempts in one file; safe to share between threads.

    Any call may raise ``BrokerUnavailableError`` when SQLite cannot answer in time.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._database = _open(path)
        self._known: dict[str, tuple[tuple[object, ...], TaskRecord]] = {}
        self._known_runs: dict[str, tuple[tuple[object, ...], RunRecord]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; a second time is fine."""
        with self._lock:
            self._database.close()

    # --- runs ----------------------------------------------------------------------------------

    def add_run(self, run: RunRecord) -> None:
        """Remember a new run."""
        with self._transaction() as database:
            database.execute(schema.insert("runs", schema.RUN_COLUMNS), schema.row_of(run))

    def run(self, run_id: str) -> RunRecord:
        """Find a run by its id or by the beginning of it."""
        found = self._rows("select * from runs where id = :id", id=run_id) or self._rows(
            "select * from runs where id > :id and id < :id || char(1114111) limit 2", id=run_id
        )
        if len(found) != 1 or not run_id:
            raise UsageError(
                f"there is no run {run_id!r}"
                if not found
                else f"several runs begin with {run_id!r}",
                remedy="'perago runs' lists them",
            )
        return schema.run_of(found[0])

    def runs(self, limit: int = 100) -> tuple[RunRecord, ...]:
        """List runs, newest first, those of sub workflows among them."""
        rows = self._rows(
            "select * from runs order by created_at desc, id limit :limit", limit=limit
        )
        return tuple(schema.run_of(row) for row in rows)

    def started_runs(self, limit: int = 100) -> tuple[RunRecord, ...]:
        """List the runs that are not of sub workflows, newest first."""
        rows = self._rows(
            "select * from runs where parent = '' order by created_at desc, id limit :limit",
            limit=limit,
        )
        return tuple(schema.run_of(row) for row in rows)

    def family(self, run_id: str) -> tuple[RunRecord, ...]:
        """List a run and all runs that belong to it, each behind the one that started it."""
        rows = self._rows(
            "with recursive family (id, depth) as (select :id, 0 union all"
            " select runs.id, depth + 1 from runs join family on runs.parent = family.id)"
            " select runs.* from runs join family on runs.id = family.id"
            " order by family.depth, runs.rowid",
            id=run_id,
        )
        return tuple(self._read_run(row) for row in rows)

    def root(self, run: RunRecord) -> RunRecord:
        """Find the run that a run belongs to in the end: the one that somebody started."""
        while run.parent:
            run = self.run(run.parent)
        return run

    def reopen(self, run_id: str, now: float) -> RunRecord:
        """Let an unsuccessful run go on with fresh retries, and restart the clock of any run.

        Runs that belong to it and have ended go on when their steps do.
        """
        family = [run.id for run in self.family(run_id)[1:] if run.status is RunStatus.RUNNING]
        with self._transaction() as database:
            for each in [run_id, *family]:
                _reopen(database, each, now)
        return self.run(run_id)

    def terminate(self, run_id: str, reason: str, now: float) -> bool:
        """End a running run from outside; its runner notices and kills what still works."""
        with self._transaction() as database:
            return _terminate(database, run_id, reason, now)

    # --- tasks ---------------------------------------------------------------------------------

    def tasks(self, run_id: str) -> tuple[TaskRecord, ...]:
        """List the attempts of a run in the order in which they were scheduled."""
        rows = self._rows("select * from tasks where run_id = :id order by seq", id=run_id)
        return tuple(self._read(row) for row in rows)

    def family_tasks(self, run_id: str) -> tuple[TaskRecord, ...]:
        """List the attempts of a run and of all that belong to it, those of each run together."""
        return tuple(task for run in self.family(run_id) for task in self.tasks(run.id))

    def left_to_people(self) -> tuple[TaskRecord, ...]:
        """List the steps of running runs that a person can do now, the oldest first."""
        rows = self._rows(
            "select tasks.* from tasks join runs on runs.id = tasks.run_id"
            " where tasks.kind = :human and tasks.status = :open and runs.status = :running"
            " order by tasks.started_at, tasks.task_id",
            human=TaskKind.HUMAN,
            open=Status.IN_PROGRESS,
            running=RunStatus.RUNNING,
        )
        return tuple(schema.task_of(row) for row in rows)

    def task(self, task_id: str) -> TaskRecord | None:
        """Find one attempt."""
        rows = self._rows("select * from tasks where task_id = :id", id=task_id)
        return schema.task_of(rows[0]) if rows else None

    def claim(self, task: TaskRecord, execution_id: str, executor_id: str, now: float) -> bool:
        """Move SCHEDULED to IN_PROGRESS for one executor; False when it is no longer there."""
        with self._transaction() as database:
            return _move(
                database,
                task.task_id,
                Status.SCHEDULED,
                {
                    "status": Status.IN_PROGRESS,
                    "execution_id": execution_id,
                    "executor_id": executor_id,
                    "started_at": now,
                },
            )

    def finish(self, task_id: str, changes: Mapping[str, object]) -> bool:
        """Move IN_PROGRESS to whatever ``changes`` says; False when it was not in progress."""
        with self._transaction() as database:
            return _move(database, task_id, Status.IN_PROGRESS, changes)

    def apply(self, run_id: str, actions: Sequence[Action], now: float) -> bool:
        """Carry out one decision as a whole, or nothing of it when it is out of date."""
        with self._transaction() as database:
            applied = _is_running(database, run_id) and all(
                _apply(database, run_id, action, now) for action in actions
            )
            if not applied:
                database.rollback()
        return applied

    # --- SQLite --------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, _translated(self.path):
            self._database.execute("begin immediate")
            try:
                yield self._database
            except BaseException:
                self._database.rollback()
                raise
            self._database.commit()

    def _read(self, row: sqlite3.Row) -> TaskRecord:
        """Read a row, unless it is the same as the last time: a loop has many, and few change."""
        raw, task_id = tuple(row), row["task_id"]
        known = self._known.get(task_id)
        if known is not None and known[0] == raw:
            return known[1]
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        found = schema.task_of(row)
        self._known[task_id] = raw, found
        return found

    def _read_run(self, row: sqlite3.Row) -> RunRecord:
        raw, run_id = tuple(row), row["id"]
        known = self._known_runs.get(run_id)
        if known is not None and known[0] == raw:
            return known[1]
        if len(self._known_runs) >= MOST_KNOWN:
            self._known_runs.clear()
        found = schema.run_of(row)
        self._known_runs[run_id] = raw, found
        return found

    def _rows(self, query: str, **values: object) -> list[sqlite3.Row]:
        with self._lock, _translated(self.path):
            return self._database.execute(query, values).fetchall()


def _apply(  # noqa: PLR0911 - one for each kind
    database: sqlite3.Connection, run_id: str, action: Action, now: float
) -> bool:
    """Carry out one action; False when what it was decided on has changed."""
    match action:
        case Schedule() | AddSystemTask():
            return _add(database, "tasks", action.task)
        case UpdateSystemTask():
            changes = {column: getattr(action.now, column) for column in _MOVING}
            return _move(database, action.task.task_id, action.task.status, changes)
        case StartChild():
            return _add(database, "runs", action.child)
        case ReopenChild():
            return _reopen(database, action.child.id, now)
        case EndRun():
            return _end_run(database, run_id, action, now)
        case Alert():
            return True
        case TimeOut() | CancelTask() | ContinueWithErrors():
            return _move(database, action.task.task_id, action.task.status, _changes(action, now))


def _changes(action: TimeOut | CancelTask | ContinueWithErrors, now: float) -> dict[str, object]:
    match action:
        case TimeOut():
            return {"status": Status.TIMED_OUT, "reason": action.reason, "ended_at": now}
        case CancelTask():
            return {"status": Status.CANCELED, "reason": "the run ended", "ended_at": now}
        case ContinueWithErrors():
            return {"status": Status.COMPLETED_WITH_ERRORS}


def _add(database: sqlite3.Connection, table: str, record: TaskRecord | RunRecord) -> bool:
    columns = schema.TASK_COLUMNS if isinstance(record, TaskRecord) else schema.RUN_COLUMNS
    try:
        database.execute(schema.insert(table, columns), schema.row_of(record))
    except sqlite3.IntegrityError:
        return False  # the same decision was made, and carried out, by another process
    return True


def _move(
    database: sqlite3.Connection, task_id: str, expected: Status, changes: Mapping[str, object]
) -> bool:
    cells = {column: schema.cell(column, value) for column, value in changes.items()}
    assignments = ", ".join(f"{column} = :{column}" for column in cells)
    moved = database.execute(
        f"update tasks set {assignments} where task_id = :task_id and status = :expected",  # noqa: S608 - column names are ours
        {**cells, "task_id": task_id, "expected": expected},
    )
    return moved.rowcount == 1


def _end_run(database: sqlite3.Connection, run_id: str, end: EndRun, now: float) -> bool:
    ended = database.execute(
        "update runs set status = :status, output = :output, reason = :reason, ended_at = :now"
        " where id = :id and status = :running",
        {
            "status": end.status,
            "output": schema.cell("output", dict(end.output)),
            "reason": end.reason,
            "now": now,
            "id": run_id,
            "running": RunStatus.RUNNING,
        },
    )
    if ended.rowcount != 1:
        return False
    why = end_by_parent(end.status, end.reason)
    for row in database.execute("select id from runs where parent = ?", (run_id,)).fetchall():
        _terminate(database, row["id"], why, now)
    return True


def _terminate(database: sqlite3.Connection, run_id: str, reason: str, now: float) -> bool:
    """End a running run with all that is open in it, and the runs that belong to it."""
    if not _end_run(database, run_id, EndRun(RunStatus.TERMINATED, {}, reason), now):
        return False
    database.execute(
        "update tasks set status = :canceled, reason = :reason, ended_at = :now"
        " where run_id = :id and status in (:scheduled, :in_progress)",
        {
            "canceled": Status.CANCELED,
            "scheduled": Status.SCHEDULED,
            "in_progress": Status.IN_PROGRESS,
            "reason": reason,
            "now": now,
            "id": run_id,
        },
    )
    return True


def _reopen(database: sqlite3.Connection, run_id: str, now: float) -> bool:
    opened = database.execute(
        "update runs set clock_from = :now, generation = generation + (status != :running),"
        " status = :running, reason = '', output = '{}', ended_at = null"
        " where id = :id and status != :completed",
        {
            "now": now,
            "running": RunStatus.RUNNING,
            "completed": RunStatus.COMPLETED,
            "id": run_id,
        },
    )
    return opened.rowcount == 1


def _is_running(database: sqlite3.Connection, run_id: str) -> bool:
    row = database.execute("select status from runs where id = ?", (run_id,)).fetchone()
    return row is not None and row["status"] == RunStatus.RUNNING


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise BrokerUnavailableError(
            f"the state of local runs in {path} cannot be used: {error}",
            remedy="check that the file is readable, writable and not on a full disk",
        ) from error


def _open(path: Path) -> sqlite3.Connection:
    """Open the file, or make it; two processes may do so at once."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        database = opened(path, BUSY_TIMEOUT_SECONDS, _prepare, check_same_thread=False)
    except (OSError, sqlite3.Error, _ForeignFileError) as error:
        raise RuntimeConfigError(
            f"{path} cannot hold the state of local runs: {error}",
            remedy="name a file in a directory that can be written, or one that Perago made",
        ) from error
    database.row_factory = sqlite3.Row
    return database


class _ForeignFileError(Exception):
    """The file is SQLite, but not ours, or of another version."""


def _prepare(database: sqlite3.Connection) -> None:
    # A completion that a power cut takes back would leave later steps on a ref that is unknown.
    database.execute("pragma synchronous = full")
    if _version(database) == schema.VERSION:
        return
    database.execute("begin immediate")
    try:
        version = _version(database)
        if version == 0:
            for statement in schema.TABLES.split(";"):
                database.execute(statement)
            database.execute(f"pragma application_id = {schema.APPLICATION_ID}")
        else:
            for older in range(version, schema.VERSION):
                for statement in schema.UPGRADES[older].split(";"):
                    database.execute(statement)
        database.execute(f"pragma user_version = {schema.VERSION}")
    except BaseException:
        database.rollback()
        raise
    database.commit()


def _version(database: sqlite3.Connection) -> int:
    """Return the version of the tables; 0 where there are none yet."""
    kind, version = (
        database.execute(f"pragma {mark}").fetchone()[0]
        for mark in ("application_id", "user_version")
    )
    if kind == schema.APPLICATION_ID and 1 <= version <= schema.VERSION:
        return int(version)
    if database.execute("select count(*) from sqlite_master").fetchone()[0]:
        raise _ForeignFileError("it is a database of another kind or version")
    return 0
