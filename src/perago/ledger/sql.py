"""The ledger as one table of a database; the SQL is what SQLite and PostgreSQL both speak."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any, Final, Protocol

from perago.protocol.adoption import Completion, Posting, Terms
from perago.protocol.values import Attempt
from perago.redaction import hidden_facts

TABLE: Final = "perago_ledger"
SCHEMA: Final = (
    f"""CREATE TABLE IF NOT EXISTS {TABLE} (
    execution_id TEXT PRIMARY KEY,
    workflow_instance_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    retry_count INTEGER NOT NULL,
    reference_task_name TEXT NOT NULL,
    task_def_name TEXT NOT NULL,
    seq INTEGER NOT NULL,
    iteration INTEGER NOT NULL,
    started_at BIGINT NOT NULL,
    logical_task_key TEXT NOT NULL,
    repository TEXT NOT NULL,
    branch TEXT NOT NULL,
    input_ref TEXT NOT NULL,
    params TEXT NOT NULL,
    task TEXT NOT NULL,
    prefix TEXT NOT NULL,
    fence TEXT NOT NULL,
    code TEXT NOT NULL,
    decision TEXT NOT NULL,
    head TEXT NOT NULL,
    staged TEXT,
    output TEXT NOT NULL,
    intended_at DOUBLE PRECISION NOT NULL,
    ref TEXT,
    landed_at DOUBLE PRECISION,
    completion TEXT,
    settled_at DOUBLE PRECISION
)""",
    f"CREATE INDEX IF NOT EXISTS {TABLE}_steps ON {TABLE} (logical_task_key)",
    f"CREATE INDEX IF NOT EXISTS {TABLE}_times ON {TABLE} (intended_at)",
)
_COLUMNS: Final = (
    "execution_id, workflow_instance_id, task_id, retry_count, reference_task_name, task_def_name,"
    " seq, iteration, started_at, logical_task_key, repository, branch, input_ref, params, task,"
    " prefix, fence, code, decision, head, staged, output, intended_at, ref, landed_at, completion,"
    " settled_at"
)
# S608: every word below is ours; values travel beside the statement.
_POST: Final = (
    f"INSERT INTO {TABLE} ({_COLUMNS}) VALUES ({', '.join('?' * 27)})"  # noqa: S608
    " ON CONFLICT (execution_id) DO UPDATE SET decision = excluded.decision,"
    " head = excluded.head, ref = excluded.ref, landed_at = excluded.landed_at"
    f" WHERE {TABLE}.ref IS NULL"
)
_SETTLE: Final = (
    f"UPDATE {TABLE} SET completion = ?, settled_at = ?"  # noqa: S608
    " WHERE execution_id = ? AND completion IS NULL"
)
_OF_STEP: Final = (
    f"SELECT {_COLUMNS} FROM {TABLE}"  # noqa: S608
    " WHERE logical_task_key = ? ORDER BY intended_at, execution_id"
)
Row = tuple[Any, ...]


class Database(Protocol):
    """Carries out one statement at a time, each in a transaction of its own, in bounded time."""

    def run(self, statement: str, values: Sequence[object]) -> list[Row]:
        """Return the rows; ``LedgerUnavailableError`` when it did not work out.

        It may have been carried out then.
        """

    def close(self) -> None:
        """Close what is open."""


class SqlLedger:
    """The ``Ledger`` port on a database, and what people look at."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def post(self, posting: Posting) -> None:
        """Record an execution, or what is known of it now; a ref once recorded stays."""
        self._database.run(_POST, _row(posting))

    def settle(self, execution_id: str, completion: Completion, at: float) -> None:
        """Record what the engine did with the report; the first word counts."""
        self._database.run(_SETTLE, (str(completion), at, execution_id))

    def of_step(self, logical_task_key: str) -> Sequence[Posting]:
        """Return all that is recorded of a step, oldest first."""
        return [_posting(row) for row in self._database.run(_OF_STEP, (logical_task_key,))]

    def latest(
        self, limit: int, repository: str | None = None, workflow: str | None = None
    ) -> Sequence[Posting]:
        """Return the newest postings, newest first; a workflow id may be cut short."""
        wanted: dict[str, str] = {}
        if repository is not None:
            wanted["repository = ?"] = repository
        if workflow is not None:
            wanted["SUBSTR(workflow_instance_id, 1, LENGTH(?)) = ?"] = workflow
        values = [value for sign, value in wanted.items() for _ in range(sign.count("?"))]
        where = f" WHERE {' AND '.join(wanted)}" if wanted else ""
        statement = (
            f"SELECT {_COLUMNS} FROM {TABLE}{where}"  # noqa: S608
            " ORDER BY intended_at DESC, execution_id LIMIT ?"
        )
        return [_posting(row) for row in self._database.run(statement, (*values, limit))]

    def count(self) -> int:
        """Count the postings."""
        return int(self._database.run(f"SELECT COUNT(*) FROM {TABLE}", ())[0][0])  # noqa: S608

    def close(self) -> None:
        """Close what is open."""
        self._database.close()


def _row(posting: Posting) -> Row:
    return (
        posting.execution_id,
        *astuple(posting.attempt),
        *astuple(posting.terms),
        posting.decision,
        posting.head,
        posting.staged,
        json.dumps(hidden_facts(posting.output)),
        posting.intended_at,
        posting.ref,
        posting.landed_at,
        posting.completion and str(posting.completion),
        posting.settled_at,
    )


def _posting(row: Row) -> Posting:
    execution_id, *rest = row
    attempt, terms, said = rest[:8], rest[8:17], rest[17:]
    decision, head, staged, output, intended_at, ref, landed_at, completion, settled_at = said
    return Posting(
        execution_id=execution_id,
        attempt=Attempt(*attempt),
        terms=Terms(*terms),
        decision=decision,
        head=head,
        staged=staged,
        output=json.loads(output),
        intended_at=intended_at,
        ref=ref,
        landed_at=landed_at,
        completion=Completion(completion) if completion else None,
        settled_at=settled_at,
    )
