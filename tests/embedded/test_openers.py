"""A home that several processes open for the first time: each of them gets it (V1)."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from perago.ledger.sqlite import SqliteDatabase
from perago.sqlite import opened
from perago.stores.lakefs.manifests import Manifests
from tests.embedded import openers

ROUNDS = int(os.environ.get("PERAGO_RACE_ROUNDS", "8"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / "store").mkdir(parents=True)
    return tmp_path / "home"


def open_listings(home: Path, number: int) -> None:
    listings = Manifests(home / "manifests.sqlite")
    listings.remember("repository", f"ref-{number}", "", [])
    assert listings.listing("repository", f"ref-{number}", "") == []


def open_ledger(home: Path, _: int) -> None:
    assert SqliteDatabase(home / "ledger.sqlite").run("SELECT 1", ()) == [(1,)]


DATABASES: dict[str, Callable[[Path, int], None]] = {
    "store/catalogue.sqlite": openers.open_store,
    "runs.sqlite": openers.open_runs,
    "events.sqlite": openers.open_events,
    "packs.sqlite": openers.open_index,
    "manifests.sqlite": open_listings,
    "ledger.sqlite": open_ledger,
}


@pytest.mark.parametrize("name", DATABASES)
def test_a_first_opener_waits_for_another_who_reads(home: Path, name: str) -> None:
    """Its time to wait is set before anything else is done."""
    other = sqlite3.connect(home / name, isolation_level=None, check_same_thread=False)
    other.execute("PRAGMA application_id")
    other.execute("BEGIN")
    other.execute("SELECT * FROM sqlite_master").fetchall()
    letting_go = threading.Timer(0.3, other.close)
    letting_go.start()
    try:
        DATABASES[name](home, 1)
    finally:
        letting_go.join()


def test_many_first_openers_all_get_it(tmp_path: Path) -> None:
    assert openers.race(tmp_path, ROUNDS, 12) == []


@pytest.mark.parametrize("name", DATABASES)
def test_a_database_is_for_its_owner_alone_from_the_first_moment(home: Path, name: str) -> None:
    before = os.umask(0)
    try:
        DATABASES[name](home, 1)
        modes = {}
        for path in (home / name).parent.glob("*.sqlite*"):
            with suppress(FileNotFoundError):  # What was opened is closed whenever it is collected.
                modes[path.name] = mode_of(path)
    finally:
        os.umask(before)
    assert set(modes.values()) == {0o600}, modes


@pytest.mark.parametrize("name", DATABASES)
def test_a_database_that_others_could_read_is_closed_when_it_is_opened(
    home: Path, name: str
) -> None:
    DATABASES[name](home, 1)
    path = home / name
    kept = sqlite3.connect(path)  # So that the files beside it stay.
    kept.execute("SELECT * FROM sqlite_master").fetchall()
    for each in path.parent.glob(f"{path.name}*"):
        each.chmod(0o644)
    DATABASES[name](home, 2)
    assert {mode_of(each) for each in path.parent.glob(f"{path.name}*")} == {0o600}
    kept.close()


def test_opening_again_does_not_let_go_of_the_locks_of_other_threads(home: Path) -> None:
    """POSIX locks are gone when the process closes any descriptor of the file."""
    path = home / "some.sqlite"
    first = opened(path, 5.0, lambda _: None)
    first.execute("BEGIN IMMEDIATE")
    opened(path, 5.0, lambda _: None).close()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            stranger = sqlite3.connect(path, timeout=0, isolation_level=None)
            stranger.execute("BEGIN IMMEDIATE")
            os.write(writer, b"taken")
        except sqlite3.OperationalError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    said = os.read(reader, 100).decode()
    os.close(reader)
    os.close(writer)
    first.execute("ROLLBACK")
    assert said == "database is locked"


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)
