"""What dead executors left, and what must not be touched: W5, V7."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from perago.clock import SystemClock
from perago.protocol.paths import MARKER
from perago.protocol.values import Attempt
from perago.workspace.owner import is_alive, token_of
from perago.workspace.rooms import AttemptRooms
from perago.workspace.sweeper import remove_rooms_of, sweep
from tests.patience import LIMIT

ATTEMPT = Attempt("workflow-1", "task-1", 0, "clean_ref", "clean")
DAY = 86_400.0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def dead() -> int:
    """The id of a process that has ended and was reaped."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait(LIMIT)
    return child.pid


@pytest.fixture
def living() -> Iterator[int]:
    """The id of a process that lives as long as the test."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        yield child.pid


def room(root: Path, execution: str, **marker: object) -> Path:
    """Make a room, then say something else about its owner."""
    made = AttemptRooms(root, "worker0001", SystemClock()).enter(ATTEMPT, execution)
    (made.workspace / "a").write_bytes(b"x")
    said = json.loads((made.path / MARKER).read_text()) | marker
    (made.path / MARKER).write_text(json.dumps(said))
    return made.path


def swept(root: Path, *, dry_run: bool = False) -> dict[str, bool]:
    found = sweep(root, DAY, SystemClock(), dry_run=dry_run)
    assert all(one.why for one in found), "the reason is told either way"
    return {one.path.name: one.removed for one in found}


def age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_w5_what_a_dead_owner_left_is_removed(root: Path, dead: int) -> None:
    path = room(root, "e1", owner_pid=dead, owner_token="")
    assert swept(root) == {"task-1-e1": True}
    assert not path.exists()


def test_w5_what_a_living_owner_holds_is_kept_however_old(root: Path, living: int) -> None:
    path = room(root, "e1", owner_pid=living, owner_token=token_of(living))
    mine = room(root, "e2")
    age(path, 100 * DAY)
    assert swept(root) == {"task-1-e1": False, "task-1-e2": False}
    assert (path / "workspace" / "a").exists()
    assert (mine / "workspace" / "a").exists()


@pytest.mark.skipif(not token_of(os.getpid()), reason="this system does not tell when one started")
def test_w5_a_process_that_got_the_old_number_is_not_the_owner(root: Path, living: int) -> None:
    """The usual thing after a container restart: the same pid, another process."""
    earlier = f"another-boot:{token_of(living).rpartition(':')[2]}"
    room(root, "e1", owner_pid=living, owner_token=earlier)
    assert swept(root) == {"task-1-e1": True}


@pytest.mark.skipif(not token_of(os.getpid()), reason="this system has no /proc")
def test_w5_a_dead_owner_that_nobody_reaped_is_dead(root: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    token = token_of(child.pid)
    assert is_alive(child.pid, token)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    room(root, "e1", owner_pid=child.pid, owner_token=token)
    assert swept(root) == {"task-1-e1": True}
    child.communicate(timeout=LIMIT)


@pytest.mark.parametrize(
    "marker",
    [
        pytest.param("", id="empty"),
        pytest.param("{", id="cut off"),
        pytest.param("[]", id="no object"),
        pytest.param(None, id="missing"),
    ],
)
def test_w5_without_a_marker_only_age_can_tell(root: Path, marker: str | None) -> None:
    path = room(root, "e1")
    if marker is None:
        (path / MARKER).unlink()
    else:
        (path / MARKER).write_text(marker)
    assert swept(root) == {"task-1-e1": False}, "it may be in the making"
    age(path, DAY + 60)
    assert swept(root) == {"task-1-e1": True}
    assert not path.exists()


@pytest.mark.parametrize("pid", [0, -1, 10**30, "1", None, [1]], ids=repr)
def test_w5_a_marker_that_names_no_process_has_no_owner(root: Path, pid: object) -> None:
    """Signals to 0 or -1 would mean whole groups; such a number is never asked about."""
    room(root, "e1", owner_pid=pid)
    assert swept(root) == {"task-1-e1": True}


def test_w5_a_dry_run_removes_nothing(root: Path, dead: int) -> None:
    path = room(root, "e1", owner_pid=dead)
    assert swept(root, dry_run=True) == {"task-1-e1": True}
    assert (path / "workspace" / "a").exists()


def test_v6_what_is_no_room_is_not_touched(root: Path, tmp_path: Path) -> None:
    """A root may be somebody's directory: only what looks like a room is looked at."""
    theirs = root / "photos"
    theirs.mkdir(parents=True)
    (theirs / "holiday.jpg").write_bytes(b"x")
    age(theirs, 1000 * DAY)
    (root / ".perago-supervisor.lock").touch()
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "link").symlink_to(outside)
    assert swept(root) == {}
    assert (theirs / "holiday.jpg").exists()
    assert outside.exists()


def test_v7_a_sweep_that_was_cut_off_is_finished_by_the_next(root: Path) -> None:
    path = room(root, "e1")
    (path / MARKER).rename(path / ".perago-deep-7")
    age(path, DAY + 60)
    assert swept(root) == {"task-1-e1": True}


def test_w5_an_absent_root_has_no_orphans(root: Path) -> None:
    assert swept(root) == {}


def test_w5_a_dead_executors_rooms_are_found_by_their_marker(root: Path) -> None:
    kept = room(root, "e2")
    gone = room(root, "e1")
    assert remove_rooms_of(root, "e1") == 1
    assert not gone.exists()
    assert kept.exists()
    assert remove_rooms_of(root, "e1") == 0
