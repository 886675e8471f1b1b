"""The event log: rows go together, in order, and what must be durable is, whoever is killed."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from perago.clock import SystemClock
from perago.history.attempts import attempt_history
from perago.history.event_log import AttemptJournal, EventLog
from perago.protocol.points import POINTS
from perago.testing.clock import ManualClock
from tests.observe import told
from tests.patience import LIMIT

DURABLE = (
    "before download", "before body", "branch created", "decision", "applied", "published",
    "after report",
)  # fmt: skip


@pytest.mark.parametrize("point", DURABLE)
def test_k4_everything_up_to_a_durable_point_is_there_when_it_returns(
    tmp_path: Path, point: str
) -> None:
    log = EventLog(tmp_path / "events.sqlite")
    claim = told.claim()
    journal = AttemptJournal(log, claim, SystemClock())
    wanted = POINTS[: POINTS.index(point) + 1]
    for name in wanted:
        journal.event(told.event(name))
    other = EventLog(tmp_path / "events.sqlite")  # As another process would look.
    assert tuple(one.event.title for one in other.of_execution(claim.execution_id)) == wanted
    other.close()
    log.close()


@pytest.mark.parametrize(
    "name", ["warning", "traceback", "decided", "lost completion", "outcome unknown"]
)
def test_what_somebody_will_ask_about_is_written_at_once(tmp_path: Path, name: str) -> None:
    log = EventLog(tmp_path / "events.sqlite")
    claim = told.claim()
    AttemptJournal(log, claim, SystemClock()).event(told.event(name, text="x", status="FAILED"))
    assert [one.event.title for one in log.of_execution(claim.execution_id)] == [name]
    log.close()


def test_rows_are_not_gathered_for_long(tmp_path: Path) -> None:
    log, clock, claim = EventLog(tmp_path / "events.sqlite"), ManualClock(), told.claim()
    journal = AttemptJournal(log, claim, clock)
    journal.event(told.event("claimed"))
    journal.event(told.event("before input"))
    assert log.of_execution(claim.execution_id) == []
    clock.advance(1)
    journal.event(told.event("after input"))
    assert len(log.of_execution(claim.execution_id)) == 3
    for _ in range(600):
        journal.event(told.event("metric", kind="gauge", name="rows", value=1.0))
    assert len(log.of_execution(claim.execution_id)) == 503
    log.close()


def test_whoever_watches_hears_at_once(tmp_path: Path) -> None:
    log, claim = EventLog(tmp_path / "events.sqlite"), told.claim()
    heard: list[object] = []
    journal = AttemptJournal(log, claim, SystemClock(), lambda body: heard.append(body["event"]))
    journal.event(told.event("claimed"))
    assert heard == ["claimed"]
    log.close()


def test_a_killed_process_leaves_what_was_durable(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys, pathlib\n"
        "from perago.clock import SystemClock\n"
        "from perago.history.event_log import AttemptJournal, EventLog\n"
        "from tests.observe import told\n"
        "claim = told.claim()\n"
        "print(claim.execution_id, flush=True)\n"
        "log = EventLog(pathlib.Path(sys.argv[1]))\n"
        "journal = AttemptJournal(log, claim, SystemClock())\n"
        "for name in ('claimed', 'before input', 'after input', 'before body'):\n"
        "    journal.event(told.event(name))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    path = tmp_path / "events.sqlite"
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    log = EventLog(path)
    assert attempt_history(log.of_execution(done.stdout.strip())).ending == "died in body"
    log.close()


def test_many_threads_write_one_file_and_each_attempt_keeps_its_order(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.sqlite")
    claims = [told.claim() for _ in range(40)]

    def work(mine: int) -> None:
        for claim in claims[mine::4]:
            journal = AttemptJournal(log, claim, SystemClock())
            for name in POINTS:
                journal.event(told.event(name, seconds=0.001))
        log.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    for claim in claims:
        assert tuple(one.event.title for one in log.of_execution(claim.execution_id)) == POINTS
    log.close()


def test_attempts_are_found_by_any_id_whole_or_begun(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.sqlite")
    claims = [told.claim() for _ in range(3)]
    for claim in claims:
        journal = AttemptJournal(log, claim, SystemClock())
        journal.event(told.event("claimed"))
        journal.event(told.event("decision", kind="merge"))
    for claim in claims:
        attempt = claim.attempt
        for found in (claim.execution_id, attempt.task_id, attempt.workflow_instance_id):
            assert log.executions(found) == [claim.execution_id]
            assert claim.execution_id in log.executions(found[:6])
        assert len(log.of_workflow(attempt.workflow_instance_id)) == 2
    assert log.executions("") == [claim.execution_id for claim in claims]
    log.close()


def test_k4_what_displaces_publications_of_others_is_found_by_its_branch(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.sqlite")
    wanted = []
    for kind in ("merge", "replace", "keep", "relocate", "adopt", "refuse"):
        for branch in ("main", "other"):
            claim = told.claim()
            where = {"repository": "songs", "branch": branch, "head": "h"}
            event = told.event("decision", kind=kind, **where)
            AttemptJournal(log, claim, SystemClock()).event(event)
            if kind in {"replace", "relocate", "adopt"} and branch == "main":
                wanted.append(claim.execution_id)
    assert [one.execution_id for one in log.displacing("songs", "main")] == wanted
    assert log.displacing("other", "main") == []
    log.close()


def test_a_file_of_an_earlier_version_is_still_read_and_written(tmp_path: Path) -> None:
    path = tmp_path / "events.sqlite"
    with sqlite3.connect(path) as before:
        before.executescript(
            "CREATE TABLE events (id INTEGER PRIMARY KEY, at REAL NOT NULL, execution_id TEXT NOT"
            " NULL, workflow_instance_id TEXT NOT NULL, task_id TEXT NOT NULL, retry_count INTEGER"
            " NOT NULL, reference_task_name TEXT NOT NULL, task_def_name TEXT NOT NULL, name TEXT"
            " NOT NULL, facts TEXT NOT NULL);"
            "CREATE INDEX by_name ON events (name);"
            "INSERT INTO events VALUES (1, 1.0, 'e1', 'w1', 't1', 0, 'r', 'd', 'claimed', '{}');"
        )
    before.close()
    log, claim = EventLog(path), told.claim()
    AttemptJournal(log, claim, SystemClock()).event(told.event("decided", status="FAILED"))
    assert log.executions("t1") == ["e1"]
    assert log.executions(claim.execution_id) == [claim.execution_id]
    log.close()


def test_several_processes_may_make_the_file_at_once(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib\n"
        "from perago.history.event_log import EventLog\n"
        "sys.stdin.read()\n"
        "for name in range(40):\n"
        "    log = EventLog(pathlib.Path(sys.argv[1]) / str(name))\n"
        "    log.append([])\n"
        "    log.close()\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    makers = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(4)]
    try:
        for maker in makers:  # All of them wait for this, so that they begin together.
            assert maker.stdin is not None
            maker.stdin.close()
        assert [maker.wait(LIMIT) for maker in makers] == [0] * 4
    finally:
        for maker in makers:
            maker.kill()
            maker.wait(LIMIT)
