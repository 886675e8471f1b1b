"""What is done for the dead, and what never waits for it: W5, R3, V7."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from perago.clock import SystemClock
from perago.ports import Broker, Clock
from perago.protocol.outcome import Outcome
from perago.protocol.values import Attempt, AttemptSnapshot, Claim, Staging
from perago.worker.post_mortem import CleanupConfig, DeadExecution, PostMortem
from perago.workspace.attempt_dirs import LocalAttemptDirs
from tests.patience import LIMIT
from tests.worker.stage import eventually

ATTEMPT = Attempt("workflow-1", "task-1", 0, "clean_ref", "clean")
WORKSPACE = {"repository": "r", "branch": "main", "ref_type": "commit", "ref": "a" * 64}


class Told:
    """A broker that remembers what it was told, and what was on the disk then."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.reports: list[list[str]] = []

    def current(self, attempt: Attempt) -> AttemptSnapshot:
        raise NotImplementedError

    def standing(self, task_id: str) -> str | None:
        raise AssertionError("nothing is replaced here")

    def report(self, attempt: Attempt, outcome: Outcome) -> bool:
        self.reports.append(attempt_dirs_in(self.root))
        return True


class Hasty(SystemClock):
    """A clock on which whatever is looked at twice took a minute."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        self.seconds += 60
        return self.seconds


def attempt_dirs_in(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir() if path.is_dir())


def dead(execution_id: str) -> DeadExecution:
    claim = Claim(ATTEMPT, {"workspace": WORKSPACE, "params": {}}, execution_id)
    return DeadExecution(claim, "worker0001", "executor died")


@contextmanager
def post_mortem(cleanup: CleanupConfig, clock: Clock | None = None) -> Iterator[PostMortem]:
    notes: list[tuple[str, Mapping[str, object]]] = []
    made = PostMortem(cleanup, clock or SystemClock(), lambda *note: notes.append(note))
    try:
        yield made
    finally:
        made.close(30)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


def cleanup(root: Path, broker: Told, **more: object) -> CleanupConfig:
    def made(_: Claim, __: str) -> Broker:
        return broker

    common = {"drop": None, "broker": made, "reason_limit": 500}
    return CleanupConfig(root, 86_400.0, **common | more)  # type: ignore[arg-type]


def fill(root: Path, execution_id: str) -> Path:
    attempt_dir = LocalAttemptDirs(root, "worker0001", SystemClock()).enter(ATTEMPT, execution_id)
    for number in range(5):
        (attempt_dir.workspace / str(number)).touch()
    return attempt_dir.path


def test_w6_a_claim_is_given_back_while_every_removal_is_stuck(root: Path) -> None:
    """The claim's time runs: it must not wait for a hundred thousand files or a slow server."""
    go, given_back = threading.Event(), threading.Event()

    def stuck(_: Staging) -> None:
        go.wait(2 * LIMIT)  # longer than anybody waits for it

    for number in range(4):
        fill(root, f"e{number}")
    with post_mortem(cleanup(root, Told(root), drop=stuck)) as after:
        for number in range(4):
            after.settle(dead(f"e{number}"), lambda: None)
        after.do(given_back.set)
        try:
            assert given_back.wait(LIMIT)
            assert after.left >= 4, "and all the others are still stuck"
        finally:
            go.set()
    assert attempt_dirs_in(root) == []


def test_w6_a_claim_is_given_back_while_a_sweep_is_stuck(root: Path) -> None:
    go, given_back, asked = threading.Event(), threading.Event(), threading.Event()

    def stuck(_: str) -> bool:
        asked.set()
        go.wait(2 * LIMIT)  # longer than anybody waits for it
        return True

    path = fill(root, "e1")
    marker = path / ".perago-attempt.json"
    marker.write_text(marker.read_text().replace('"owner_token": "', '"owner_token": "other:1:'))
    with post_mortem(cleanup(root, Told(root), in_progress=stuck)) as after:
        after.sweep_soon()
        after.sweep_soon()
        assert asked.wait(LIMIT)
        after.do(given_back.set)
        try:
            assert given_back.wait(LIMIT)
        finally:
            go.set()
    assert attempt_dirs_in(root) == [path.name], "the engine calls it in progress, so it is kept"


def test_v7_what_is_left_while_a_sweep_is_at_it_is_swept_by_the_next(root: Path) -> None:
    """The one at it has listed the directories already."""
    go, asked = threading.Event(), threading.Event()

    def stuck(_: str) -> bool:
        asked.set()
        go.wait(2 * LIMIT)  # longer than anybody waits for it
        return True

    foreign = fill(root, "e1") / ".perago-attempt.json"
    foreign.write_text(foreign.read_text().replace('"owner_token": "', '"owner_token": "other:1:'))
    with post_mortem(cleanup(root, Told(root), in_progress=stuck)) as after:
        after.sweep_soon()
        assert asked.wait(LIMIT)
        late = fill(root, "e2") / ".perago-attempt.json"
        late.write_text(late.read_text().replace('"started_at"', '"abandoned_at": 1, "started_at"'))
        after.sweep_soon()
        go.set()
        eventually(lambda: attempt_dirs_in(root) == [foreign.parent.name], "a second sweep")


def test_r3_the_dead_are_reported_after_their_directory_is_gone(root: Path) -> None:
    fill(root, "e1")
    broker, done = Told(root), threading.Event()
    with post_mortem(cleanup(root, broker)) as after:
        after.settle(dead("e1"), done.set)
        assert done.wait(LIMIT)
    assert broker.reports == [[]]


def test_r3_a_directory_that_takes_too_long_does_not_keep_the_report(root: Path) -> None:
    """The rest of it is removed afterwards (V7)."""
    path = fill(root, "e1")
    broker, done = Told(root), threading.Event()
    with post_mortem(cleanup(root, broker), Hasty()) as after:
        after.settle(dead("e1"), done.set)
        assert done.wait(LIMIT)
        eventually(lambda: broker.reports != [], "the report, which comes after the release")
        assert broker.reports == [[path.name]]
        eventually(lambda: attempt_dirs_in(root) == [], "the removal after the report")
