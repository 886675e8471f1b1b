"""An event log that is full, locked, read-only or gone: it may fail an attempt before the visible
write, never after it. Cleanup and report never depend on it (steps 13 to 15 of section 4)."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from perago.app.engines import EngineFactory
from perago.attempt.lifecycle import run_attempt
from perago.attempt.services import AttemptServices
from perago.clock import SystemClock
from perago.errors import EventLogError
from perago.history import event_log
from perago.history.event_log import AttemptJournal, EventLog
from perago.programs.running import ProgramRunner
from perago.protocol.event_format import read
from perago.protocol.events import Event, OutcomeDecided
from perago.protocol.outcome import Outcome
from perago.protocol.points import POINTS
from perago.protocol.values import Attempt, Claim, Status
from perago.tasks.declaration import definition_of
from perago.testing import Lab
from perago.testing.broker import ScriptedBroker
from perago.workspace.attempt_dirs import LocalAttemptDirs
from tests.lifecycle import tasks

WRITTEN = POINTS.index("decision")
"""The last durable point before the visible write."""
BREAKS = (
    *("claimed", "before download", "before body", "branch created", "decision", "applied"),
    *("published", "before staging cleanup", "before directory cleanup", "before report"),
    "after report",
)


class Disk:
    """Breaks the log in earnest from a named point on."""

    def __init__(self, path: Path, how: str) -> None:
        self.path = path
        self.how = how
        self._holder: sqlite3.Connection | None = None

    def fail(self, log: EventLog) -> None:
        if self.how == "locked":
            self._holder = sqlite3.connect(self.path, isolation_level=None)
            self._holder.execute("BEGIN EXCLUSIVE")
        elif self.how == "full":
            connection = log._connection()  # noqa: SLF001 - to break it
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count={pages}")
        elif self.how == "read-only":
            log._connection().execute("PRAGMA query_only=ON")  # noqa: SLF001 - to break it
        else:
            log.close()
            for file in self.path.parent.glob("events.sqlite*"):
                file.unlink()
            self.path.mkdir()

    def close(self) -> None:
        if self._holder is not None:
            self._holder.close()


class Heavy:
    """An event whose row takes much room."""

    def __init__(self, event: Event) -> None:
        self._event = event

    def __getattr__(self, name: str) -> object:
        return getattr(self._event, name)

    @property
    def facts(self) -> dict[str, object]:
        return {**self._event.facts, "ballast": "x" * 20_000}


class BreakAt:
    """A journal whose log breaks at a point; every row is big, so that a full file is met."""

    def __init__(self, inner: AttemptJournal, point: str, fail: Callable[[], None]) -> None:
        self._inner = inner
        self._point = point
        self._fail = fail

    def event(self, event: Event) -> None:
        if event.title == self._point:
            self._fail()
        self._inner.event(cast("Event", Heavy(event)))

    def progress(self, phase: str, done: int, total: int) -> None:
        self._inner.progress(phase, done, total)


def attempt(lab: Lab, how: str, point: str) -> tuple[Outcome, ScriptedBroker, list[str], Claim]:
    """Run one attempt whose log breaks when it reaches a point."""
    path = lab.attempt_dirs.parent / "events" / "events.sqlite"
    log = EventLog(path)
    log.append([])
    disk = Disk(path, how)
    workspace = {
        "repository": lab.repository,
        "branch": "main",
        "ref_type": "commit",
        "ref": lab.head.id,
    }
    name = "write"
    claim = Claim(
        Attempt(str(uuid.uuid4()), str(uuid.uuid4()), 0, name, name),
        {"workspace": workspace, "params": {}},
        uuid.uuid4().hex,
    )
    heard: list[str] = []

    def watch(body: dict[str, object]) -> None:
        heard.append(f"{body['event']} {body.get('text', '')}".strip())

    clock = SystemClock()
    journal = AttemptJournal(log, claim, clock, watch)
    broken = BreakAt(journal, point, lambda: disk.fail(log))
    attempt_dirs = LocalAttemptDirs(lab.attempt_dirs, "lab", clock)
    services = AttemptServices(
        lab.store,
        lab.broker,
        attempt_dirs,
        clock,
        broken,
        engines=EngineFactory(),
        programs=ProgramRunner(),
    )
    try:
        outcome = run_attempt(claim, definition_of(tasks.write), services)
    finally:
        disk.close()
        log.close()
    return outcome, lab.broker, heard, claim


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "_SHORT_WAIT_SECONDS", 0.05)
    monkeypatch.setattr(event_log, "_WAIT_SECONDS", 0.05)


def leftovers(lab: Lab) -> list[str]:
    found = lab.attempt_dirs.iterdir() if lab.attempt_dirs.exists() else ()
    attempt_dirs = [path.name for path in found if not path.name.startswith(".perago-")]
    branches = [branch.name for branch in lab.store.branches(lab.repository, hidden=True)]
    return attempt_dirs + [name for name in branches if name.startswith("perago-staging-")]


@pytest.mark.parametrize("how", ["locked", "full", "read-only", "gone"])
@pytest.mark.parametrize("point", BREAKS)
def test_v5_a_broken_log_fails_an_attempt_before_the_write_and_never_after(
    lab: Lab, how: str, point: str
) -> None:
    before = lab.head
    outcome, broker, heard, claim = attempt(lab, how, point)
    assert broker.reports[-1] == (claim.attempt, outcome)
    assert leftovers(lab) == []
    if POINTS.index(point) > WRITTEN:
        assert outcome.status is Status.COMPLETED
        assert outcome.output["workspace"]["ref"] == lab.head.id  # type: ignore[index]
        assert lab.head.parents == (before.id,)
    else:
        assert outcome.status is Status.FAILED
        assert "event log" in outcome.reason
        assert lab.head == before
    assert heard.count("warning the event log cannot be written") == 1
    assert "decided" in heard
    assert heard[-1].startswith(("after report", "warning"))


def test_a_log_that_heals_holds_everything_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "events.sqlite"
    log, clock = EventLog(path), SystemClock()
    claim = Claim(Attempt("w", "t", 0, "r", "d"), {}, "e")
    journal = AttemptJournal(log, claim, clock)
    journal.event(read("decision", {}))
    disk = Disk(path, "locked")
    disk.fail(log)
    with pytest.raises(EventLogError, match="locked"):
        journal.event(read("applied", {}))
    journal.event(
        read("decided", {"status": "COMPLETED"})
    )  # Not tried again: nothing waits for a lock twice.
    disk.close()
    journal.flush()
    names = [one.event.title for one in log.of_execution("e")]
    assert names == ["decision", "applied", "decided"]
    log.close()


def test_a_flush_of_a_broken_log_never_fails(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.sqlite")
    claim = Claim(Attempt("w", "t", 0, "r", "d"), {}, "e")
    journal = AttemptJournal(log, claim, SystemClock())
    journal.event(read("decision", {}))
    journal.event(read("changed", {}))
    Disk(tmp_path / "events.sqlite", "gone").fail(log)
    journal.flush()


def test_facts_that_are_not_json_do_not_break_the_log(tmp_path: Path) -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    log = EventLog(tmp_path / "events.sqlite")
    claim = Claim(Attempt("w", "t", 0, "r", "d"), {}, "e")
    AttemptJournal(log, claim, SystemClock()).event(OutcomeDecided("FAILED", output={"deep": deep}))
    (found,) = log.of_execution("e")
    assert found.event == OutcomeDecided("FAILED")
    log.close()
