"""The tables of the local broker's state, and how rows become records."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import fields
from typing import Any, Final

from perago.protocol.values import Status
from perago.workflow.records import RunRecord, RunStatus, TaskRecord
from perago.workflow.tasks import TaskKind

APPLICATION_ID: Final = 0x50524742
"""Marks the file as this kind of state; SQLite keeps it in the header."""
VERSION: Final = 3
NAME: Final = "json_extract(workflow, '$.name')"
"""The name of a run's workflow, in the words of its index."""
_INDEXES: Final = f"""
create index runs_by_time on runs (parent, created_at, id);
create index runs_by_name on runs (parent, {NAME}, created_at, id);
create index runs_by_status on runs (parent, status, created_at, id);
create index left_to_people on tasks (kind) where status = '{Status.IN_PROGRESS}'
"""
UPGRADES: Final = {
    1: "alter table tasks add column iteration integer not null default 0",
    2: f"""
    alter table runs add column parent text not null default '';
    alter table runs add column parent_task text not null default '';
    {_INDEXES}
    """,
}
"""What makes the next version of the tables out of one."""

TABLES: Final = f"""
create table runs (
    id             text primary key,
    workflow       text not null,
    modules        text not null,
    input          text not null,
    status         text not null,
    created_at     real not null,
    clock_from     real not null,
    correlation_id text,
    output         text not null,
    reason         text not null,
    ended_at       real,
    generation     integer not null,
    store          text not null,
    parent         text not null default '',
    parent_task    text not null default ''
) strict;
create table tasks (
    run_id         text not null references runs (id),
    task_id        text primary key,
    seq            integer not null,
    reference_name text not null,
    task_def_name  text not null,
    kind           text not null,
    retry_count    integer not null,
    generation     integer not null,
    status         text not null,
    input          text not null,
    start_at       real not null,
    scheduled_at   real not null,
    output         text not null,
    reason         text not null,
    started_at     real,
    ended_at       real,
    execution_id   text not null,
    executor_id    text not null,
    lost           integer not null,
    iteration      integer not null default 0,
    unique (run_id, seq),
    unique (run_id, reference_name, retry_count)
) strict;
{_INDEXES}
"""

RUN_COLUMNS: Final = tuple(column.name for column in fields(RunRecord))
TASK_COLUMNS: Final = tuple(column.name for column in fields(TaskRecord))
_JSON: Final = frozenset({"workflow", "modules", "input", "output"})


def insert(table: str, columns: tuple[str, ...]) -> str:
    """Write the statement that adds one record."""
    marks = ", ".join(f":{column}" for column in columns)
    return f"insert into {table} ({', '.join(columns)}) values ({marks})"  # noqa: S608 - our own names


def row_of(record: RunRecord | TaskRecord) -> dict[str, object]:
    """Turn a record into the values of its row."""
    columns = RUN_COLUMNS if isinstance(record, RunRecord) else TASK_COLUMNS
    return {column: cell(column, getattr(record, column)) for column in columns}


def cell(column: str, value: object) -> object:
    """Turn one value into what SQLite stores; structures are JSON."""
    if column in _JSON:
        return json.dumps(value, ensure_ascii=False)
    return int(value) if isinstance(value, bool) else value


def run_of(row: sqlite3.Row) -> RunRecord:
    """Read a run."""
    cells = _cells(row)
    cells["modules"] = tuple(cells["modules"])
    cells["status"] = RunStatus(cells["status"])
    return RunRecord(**cells)


def task_of(row: sqlite3.Row) -> TaskRecord:
    """Read a task attempt."""
    cells = _cells(row)
    cells["kind"] = TaskKind(cells["kind"])
    cells["status"] = Status(cells["status"])
    cells["lost"] = bool(cells["lost"])
    return TaskRecord(**cells)


def _cells(row: sqlite3.Row) -> dict[str, Any]:
    return {key: json.loads(row[key]) if key in _JSON else row[key] for key in row.keys()}  # noqa: SIM118 - iterating a Row gives values
