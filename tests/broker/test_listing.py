"""Lists of runs: a page at a time, by keys, the same as all of them at once."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from perago.brokers.local import schema
from perago.brokers.local.listing import RunLine, RunListing, RunQuery, asked
from perago.brokers.local.state import State
from perago.errors import BrokerUnavailableError
from perago.workflow.records import RunRecord, RunStatus

NAMES = ("songs", "words", "<b>")
STATUSES = tuple(RunStatus)


def runs() -> list[RunRecord]:
    """Make runs of which some began at the same moment, and some belong to another."""
    whole = [
        RunRecord(
            id=f"run-{number:02}",
            workflow={"name": NAMES[number % 3]},
            modules=(),
            input={},
            status=STATUSES[number % 5],
            created_at=100.0 + number // 3,
            clock_from=0.0,
            ended_at=200.0 if number % 2 else None,
        )
        for number in range(30)
    ]
    return [*whole, replace(whole[0], id="inside", parent="run-00", created_at=500.0)]


@pytest.fixture
def listing(tmp_path: Path) -> RunListing:
    with State(tmp_path / "runs.sqlite") as state:
        for run in runs():
            state.add_run(run)
    return RunListing(tmp_path / "runs.sqlite")


@pytest.mark.parametrize("status", ["", *STATUSES])
@pytest.mark.parametrize("name", ["", *NAMES, "absent"])
@pytest.mark.parametrize("limit", [1, 4, 100])
def test_z5_pages_together_are_all_runs(
    listing: RunListing, status: str, name: str, limit: int
) -> None:
    wanted = [
        run.id
        for run in sorted(runs(), key=lambda run: (run.created_at, run.id), reverse=True)
        if not run.parent and status in {"", run.status} and name in {"", run.workflow["name"]}
    ]
    found: list[RunLine] = []
    query = RunQuery(status, name, limit=limit)
    while page := listing.page(query):
        assert len(page) <= limit
        found += page
        query = replace(query, before=(page[-1].created_at, page[-1].id))
    assert [line.id for line in found] == wanted


def test_names_are_listed_once(listing: RunListing) -> None:
    assert listing.names() == sorted(NAMES)


def test_z5_no_query_sorts_or_walks_through_all_runs() -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(schema.TABLES)
        for status in ("", "FAILED"):
            for name in ("", "songs"):
                for before in (None, (1.0, "x")):
                    words, values = asked(RunQuery(status, name, before))
                    plan = database.execute(f"explain query plan {words}", values).fetchall()
                    said = " ".join(str(row[3]) for row in plan)
                    assert "SCAN" not in said, said
                    assert "TEMP B-TREE" not in said, said


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    with pytest.raises(BrokerUnavailableError, match="cannot be read"):
        RunListing(path).page(RunQuery())
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(BrokerUnavailableError, match="cannot be read"):
        RunListing(path).names()


def test_a_run_that_goes_on_has_not_taken_any_time_yet() -> None:
    line = RunLine("a", "b", "RUNNING", 5.0, None, "", "embedded")
    assert line.seconds is None
    assert replace(line, ended_at=7.0).seconds == 2.0
    assert replace(line, ended_at=1.0).seconds == 0.0
