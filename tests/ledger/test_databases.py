"""The ledger's table in SQLite and in a real PostgreSQL: one behaviour, several writers."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from perago.app.local import ledger_of
from perago.errors import LedgerUnavailableError, RuntimeConfigError
from perago.ledger.circuit_breaker import CircuitBreaker
from perago.ledger.postgres import PostgresDatabase
from perago.ledger.sql import TABLE, Row, SqlLedger
from perago.ledger.sqlite import SqliteDatabase
from perago.protocol.adoption import Completion
from perago.settings import load_settings
from tests.ledger.postgres import PASSWORD, PostgresServer
from tests.ledger.postings import FIRST, LANDED
from tests.patience import LIMIT, scaled

ROOT = Path(__file__).parent.parent.parent
INTENDED = replace(LANDED, decision="intend", head="", ref=None, landed_at=None)
KEY = FIRST.logical_task_key


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Name a place for a new ledger."""
    if request.param == "sqlite":
        return f"sqlite://{tmp_path}/deep/ledger.sqlite"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.new_database(uuid.uuid4().hex)


@pytest.fixture
def ledger(address: str) -> Iterator[SqlLedger]:
    """Give a new ledger."""
    made = ledger_of(load_settings({"PERAGO_LEDGER": address}, ROOT))
    assert made
    yield made
    made.close()


# --- what is written is what is read ------------------------------------------------------------


def test_a_posting_comes_back_as_it_was(ledger: SqlLedger) -> None:
    assert ledger.of_step(KEY) == []
    strange = replace(
        LANDED,
        execution_id="e",
        output={"result": {"text": "naïve ☃ %s ? '"}, "guards": [{"rows": 3}]},
        attempt=replace(FIRST, started_at=1_800_000_000_123, iteration=2),
    )
    ledger.post(strange)
    assert ledger.of_step(KEY) == [strange]


def test_each_step_adds_to_a_posting_and_can_be_repeated(ledger: SqlLedger) -> None:
    for _ in range(2):
        ledger.post(INTENDED)
    assert ledger.of_step(KEY) == [INTENDED]
    for ref in ("X", "Y"):  # The first word counts.
        ledger.post(replace(LANDED, ref=ref))
    ledger.post(INTENDED)
    assert ledger.of_step(KEY) == [LANDED]
    for completion in (Completion.ACCEPTED, Completion.DROPPED):
        ledger.settle(INTENDED.execution_id, completion, 3.0)
    ledger.post(replace(LANDED, ref="Y"))
    settled = replace(LANDED, completion=Completion.ACCEPTED, settled_at=3.0)
    assert ledger.of_step(KEY) == [settled]


def test_a_ref_without_an_intent_is_recorded_whole(ledger: SqlLedger) -> None:
    ledger.post(LANDED)
    assert ledger.of_step(KEY) == [LANDED]


def test_an_execution_without_a_posting_is_not_made_up(ledger: SqlLedger) -> None:
    ledger.settle("nobody", Completion.ACCEPTED, 1.0)
    assert ledger.count() == 0


def test_the_latest_come_first_and_can_be_chosen(ledger: SqlLedger) -> None:
    for number in range(5):
        ledger.post(replace(LANDED, execution_id=str(number), intended_at=float(number)))
    other = replace(FIRST, workflow_instance_id="wx_%")
    terms = replace(LANDED.terms, repository="other")
    ledger.post(replace(LANDED, execution_id="o", attempt=other, terms=terms, intended_at=9.0))
    assert [p.execution_id for p in ledger.latest(3)] == ["o", "4", "3"]
    assert [p.execution_id for p in ledger.latest(9, repository="other")] == ["o"]
    assert len(ledger.latest(9, workflow="work")) == 5
    assert len(ledger.latest(9, workflow="wx_")) == 1
    assert ledger.latest(9, repository="other", workflow="work") == []
    assert ledger.count() == 6


def test_several_processes_write_one_new_ledger_at_once(address: str, ledger: SqlLedger) -> None:
    """They also make its table at once: nobody has opened it before."""
    each, names = 15, ["a", "b", "c", "d"]
    writers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.ledger.writer", address, name, str(each)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for name in names
    ]
    for writer in writers:
        assert writer.stdout
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        _, complaints = writer.communicate(timeout=LIMIT)
        assert writer.returncode == 0, complaints
    written = ledger.of_step(KEY)
    assert {p.execution_id for p in written} == {f"{n}-{i:04d}" for n in names for i in range(each)}
    assert all(p.ref == f"ref of {p.execution_id}" for p in written)
    assert all(p.completion is Completion.DROPPED for p in written)


def test_threads_share_one_ledger(ledger: SqlLedger) -> None:
    def write(name: int) -> None:
        for number in range(10):
            ledger.post(replace(LANDED, execution_id=f"{name}-{number}"))

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert ledger.count() == 40


# --- a database that does not answer ------------------------------------------------------------


def test_a_locked_file_is_waited_for_and_then_given_up(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    holder = SqliteDatabase(path)
    holder.run("BEGIN IMMEDIATE", ())
    waiting = SqlLedger(SqliteDatabase(path, wait_seconds=0.2))
    with pytest.raises(LedgerUnavailableError, match="locked"):
        waiting.post(LANDED)
    holder.run("COMMIT", ())
    waiting.post(LANDED)
    assert waiting.count() == 1
    waiting.close()
    holder.close()


def test_a_file_that_is_no_database_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"this is something else entirely" * 100)
    with pytest.raises(LedgerUnavailableError, match="cannot be used: file is not a"):
        SqlLedger(SqliteDatabase(path)).count()


def test_a_place_that_cannot_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LedgerUnavailableError, match="cannot be used: "):
        SqlLedger(SqliteDatabase(tmp_path / "file" / "ledger.sqlite")).count()


def test_v8_a_refused_password_is_not_repeated(postgres: PostgresServer) -> None:
    wrong = postgres.address_of("postgres", "wrong-canary")
    with pytest.raises(LedgerUnavailableError) as told:
        SqlLedger(PostgresDatabase(wrong, "shown")).count()
    assert "password authentication failed" in str(told.value)
    assert "canary" not in str(told.value)
    assert told.value.__cause__ is None


WAIT_SECONDS = math.ceil(scaled(1))


def test_a_server_that_stands_still_is_given_up_in_time(postgres: PostgresServer) -> None:
    ledger = SqlLedger(PostgresDatabase(postgres.address, "shown", wait_seconds=WAIT_SECONDS))
    ledger.count()
    words = f"no answer within {WAIT_SECONDS} s"
    with postgres.standing_still(), pytest.raises(LedgerUnavailableError, match=words):
        ledger.count()
    ledger.count()


def test_nobody_there_is_told_with_the_place(postgres: PostgresServer) -> None:
    ledger = SqlLedger(PostgresDatabase("postgresql://perago@127.0.0.1:1/x", "the place"))
    with pytest.raises(LedgerUnavailableError, match="ledger the place cannot be used"):
        ledger.count()


def test_v8_an_address_with_a_mistake_is_not_repeated() -> None:
    with pytest.raises(RuntimeConfigError) as told:
        PostgresDatabase("postgresql://u:canary%ZZ@h/d?canary=1", "postgresql://h/d")
    assert "canary" not in str(told.value)


def test_a_role_that_may_only_use_the_table_needs_nothing_more(postgres: PostgresServer) -> None:
    """Many places let no service make tables: then somebody else made it."""
    address = postgres.new_database(uuid.uuid4().hex)
    owner = PostgresDatabase(address, "shown")
    owner.run("SELECT 1", ())
    role = f"r{uuid.uuid4().hex}"
    owner.run(f"CREATE ROLE {role} LOGIN PASSWORD 'secret'", ())
    owner.run(f"GRANT SELECT, INSERT, UPDATE ON {TABLE} TO {role}", ())
    limited = address.replace("perago:", f"{role}:").replace("p%40ss%2Fword%3A4711", "secret")
    ledger = SqlLedger(PostgresDatabase(limited, "shown"))
    ledger.post(INTENDED)
    ledger.post(LANDED)
    assert ledger.of_step(KEY) == [LANDED]
    assert PASSWORD not in limited


class Counting:
    """A database that is down, and counts who asks."""

    def __init__(self) -> None:
        self.asked = 0
        self.down = True

    def run(self, statement: str, values: object) -> list[Row]:
        self.asked += 1
        if self.down:
            raise LedgerUnavailableError("down", remedy="wait")
        return [(7,)]

    def close(self) -> None:
        pass


def test_a_ledger_that_failed_is_left_alone_for_a_while() -> None:
    now = [0.0]
    database = Counting()
    ledger = SqlLedger(CircuitBreaker(database, lambda: now[0]))
    for _ in range(5):
        with pytest.raises(LedgerUnavailableError, match="down; wait"):
            ledger.count()
    assert database.asked == 1
    now[0], database.down = 31.0, False
    assert ledger.count() == 7
    database.down = True
    with pytest.raises(LedgerUnavailableError):
        ledger.count()
    assert database.asked == 3
