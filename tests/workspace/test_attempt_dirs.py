"""Attempt directories: steps 2 and 14 of section 4, V6, V7."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from perago.errors import WorkspaceError
from perago.ports import AttemptDir, Clock
from perago.protocol.guard import ForbidGlob
from perago.protocol.paths import MARKER, Selection
from perago.protocol.values import Attempt
from perago.workspace.attempt_dirs import LocalAttemptDirs, remove_tree
from perago.workspace.owner import token_of
from perago.workspace.roots import ROOT_MARKER
from perago.workspace.scan import survey

ATTEMPT = Attempt("workflow-1", "task-1", 2, "clean_ref", "clean", seq=3)


class Ticking:
    """A clock that moves one second each time somebody looks."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def now(self) -> float:
        return 1_700_000_000.5

    def monotonic(self) -> float:
        self.seconds += 1
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


def attempt_dirs(root: Path, clock: Clock | None = None) -> LocalAttemptDirs:
    return LocalAttemptDirs(root, "worker0001", clock or Ticking())


def left_in(root: Path) -> list[str]:
    """List what is in a root besides the mark by which it is known."""
    return [path.name for path in root.iterdir() if path.name != ROOT_MARKER]


def fill(attempt_dir: AttemptDir, count: int = 3) -> None:
    for number in range(count):
        (attempt_dir.workspace / f"d{number}").mkdir()
        (attempt_dir.workspace / f"d{number}" / "a").write_bytes(b"x")


def test_step_2_the_name_holds_task_and_execution(tmp_path: Path) -> None:
    attempt_dir = attempt_dirs(tmp_path / "deep" / "root").enter(ATTEMPT, "execution-1")
    assert attempt_dir.path == tmp_path / "deep" / "root" / "task-1-execution-1"
    assert attempt_dir.workspace.parent == attempt_dir.path
    assert list(attempt_dir.workspace.iterdir()) == []


def test_step_2_the_marker_says_who_owns_it_and_which_attempt(tmp_path: Path) -> None:
    attempt_dir = attempt_dirs(tmp_path).enter(ATTEMPT, "execution-1")
    assert json.loads((attempt_dir.path / MARKER).read_text()) == {
        "workflow_instance_id": "workflow-1",
        "task_id": "task-1",
        "execution_id": "execution-1",
        "retry_count": 2,
        "task_def_name": "clean",
        "owner_worker_id": "worker0001",
        "owner_pid": os.getpid(),
        "owner_token": token_of(os.getpid()),
        "started_at": 1_700_000_000.5,
    }


def test_step_2_the_marker_stands_beside_the_workspace_not_in_it(tmp_path: Path) -> None:
    """So no guard sees it and no body deletes it."""
    attempt_dir = attempt_dirs(tmp_path).enter(ATTEMPT, "execution-1")
    assert sorted(path.name for path in attempt_dir.path.iterdir()) == [MARKER, "workspace"]
    tree = survey(attempt_dir.workspace, Selection())
    assert ForbidGlob("**").violation(tree) is None


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077], ids=oct)
def test_the_directory_is_private_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        attempt_dir = attempt_dirs(tmp_path / "root").enter(ATTEMPT, "execution-1")
    finally:
        os.umask(before)
    for path in (attempt_dir.path.parent, attempt_dir.path, attempt_dir.workspace):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_two_executions_of_one_attempt_have_two_rooms(tmp_path: Path) -> None:
    one, two = (attempt_dirs(tmp_path).enter(ATTEMPT, f"execution-{n}") for n in (1, 2))
    assert one.path != two.path


def test_a_room_that_exists_is_never_entered_again_nor_removed(tmp_path: Path) -> None:
    attempt_dir = attempt_dirs(tmp_path).enter(ATTEMPT, "execution-1")
    fill(attempt_dir)
    with pytest.raises(WorkspaceError, match="cannot be made: File exists"):
        attempt_dirs(tmp_path).enter(ATTEMPT, "execution-1")
    assert (attempt_dir.workspace / "d0" / "a").read_bytes() == b"x"


def test_a_root_that_cannot_be_used_is_named_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WorkspaceError) as caught:
        attempt_dirs(tmp_path / "file" / "root").enter(ATTEMPT, "execution-1")
    assert str(tmp_path / "file" / "root") in str(caught.value)
    assert "PERAGO_WORKSPACE_ROOT" in caught.value.remedy


def test_v7_half_a_room_is_not_left_behind(tmp_path: Path) -> None:
    """The disk is full when the marker is due; nobody would know whose the directory is."""

    class Broken(Ticking):
        def now(self) -> float:
            raise OSError(28, "No space left on device")

    with pytest.raises(WorkspaceError, match="No space left on device"):
        attempt_dirs(tmp_path / "root", Broken()).enter(ATTEMPT, "execution-1")
    assert left_in(tmp_path / "root") == []


# --- step 14 -----------------------------------------------------------------------------------


def test_step_14_leaving_removes_everything(tmp_path: Path) -> None:
    attempt_dir = attempt_dirs(tmp_path).enter(ATTEMPT, "execution-1")
    fill(attempt_dir)
    attempt_dirs(tmp_path).leave(attempt_dir, 30)
    assert left_in(tmp_path) == []


@pytest.mark.parametrize(
    "already", ["workspace", "everything", "marker"], ids=lambda what: f"{what} is gone"
)
def test_step_14_what_is_already_gone_is_fine(tmp_path: Path, already: str) -> None:
    attempt_dir = attempt_dirs(tmp_path).enter(ATTEMPT, "execution-1")
    if already == "marker":
        (attempt_dir.path / MARKER).unlink()
    else:
        remove_tree(
            attempt_dir.path if already == "everything" else attempt_dir.workspace, lambda: False
        )
    attempt_dirs(tmp_path).leave(attempt_dir, 30)
    assert left_in(tmp_path) == []


def test_step_14_a_removal_that_takes_too_long_is_cut_off_and_keeps_its_marker(
    tmp_path: Path,
) -> None:
    """The marker goes last: what is left is still known as somebody's."""
    attempt_dir = attempt_dirs(tmp_path).enter(ATTEMPT, "execution-1")
    fill(attempt_dir, 50)
    with pytest.raises(WorkspaceError, match="time is up"):
        attempt_dirs(tmp_path).leave(attempt_dir, 10)
    assert (attempt_dir.path / MARKER).exists()
    attempt_dirs(tmp_path).leave(attempt_dir, 10_000)
    assert not attempt_dir.path.exists()


def test_step_14_one_directory_of_many_files_is_cut_off_too(tmp_path: Path) -> None:
    attempt_dir = attempt_dirs(tmp_path).enter(ATTEMPT, "execution-1")
    for number in range(100):
        (attempt_dir.workspace / str(number)).touch()
    with pytest.raises(WorkspaceError, match="time is up"):
        attempt_dirs(tmp_path).leave(attempt_dir, 10)
    assert len(list(attempt_dir.workspace.iterdir())) > 50


def test_v6_links_are_removed_and_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_bytes(b"x")
    attempt_dir = attempt_dirs(tmp_path / "root").enter(ATTEMPT, "execution-1")
    (attempt_dir.workspace / "directory").symlink_to(outside)
    (attempt_dir.workspace / "file").symlink_to(outside / "kept")
    (attempt_dir.workspace / "loop").symlink_to(".")
    (attempt_dir.workspace / "hard").hardlink_to(outside / "kept")
    os.mkfifo(attempt_dir.workspace / "fifo")
    attempt_dirs(tmp_path / "root").leave(attempt_dir, 1000)
    assert not attempt_dir.path.exists()
    assert (outside / "kept").read_bytes() == b"x"


def test_v7_names_modes_and_depth_do_not_keep_a_directory_alive(tmp_path: Path) -> None:
    attempt_dir = attempt_dirs(tmp_path).enter(ATTEMPT, "execution-1")
    Path(os.fsdecode(os.fsencode(attempt_dir.workspace) + b"/bad\xff\n")).touch()
    locked = attempt_dir.workspace / "locked"
    (locked / "inner").mkdir(parents=True)
    (locked / "inner" / "a").touch()
    (locked / "inner").chmod(0)
    locked.chmod(0)
    attempt_dirs(tmp_path).leave(attempt_dir, 1000)
    assert not attempt_dir.path.exists()


def test_v7_a_tree_deeper_than_any_path_may_be_is_removed(tmp_path: Path) -> None:
    """500 levels of 40 characters: no single path reaches the bottom."""
    attempt_dir = attempt_dirs(tmp_path).enter(ATTEMPT, "execution-1")
    fd = os.open(attempt_dir.workspace, os.O_RDONLY)
    try:
        for _ in range(500):
            os.mkdir("n" * 40, dir_fd=fd)
            fd, parent = os.open("n" * 40, os.O_RDONLY, dir_fd=fd), fd
            os.close(parent)
        os.close(os.open("a", os.O_WRONLY | os.O_CREAT, dir_fd=fd))
    finally:
        os.close(fd)
    attempt_dirs(tmp_path).leave(attempt_dir, 100_000)
    assert not attempt_dir.path.exists()
