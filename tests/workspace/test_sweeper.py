"""What dead executors left, and what must not be touched: W5, V7."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from perago.clock import SystemClock
from perago.errors import WorkspaceError
from perago.protocol.paths import MARKER
from perago.protocol.values import Attempt
from perago.workspace.attempt_dirs import LocalAttemptDirs, claim_root
from perago.workspace.owner import is_alive, token_of
from perago.workspace.roots import ROOT_MARKER
from perago.workspace.sweeper import InProgress, remove_attempt_dir_of, sweep
from tests.filesystems import CannotMount, bound
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


def attempt_dir(root: Path, execution: str, **marker: object) -> Path:
    """Make a room, then say something else about its owner."""
    made = LocalAttemptDirs(root, "worker0001", SystemClock()).enter(ATTEMPT, execution)
    (made.workspace / "a").write_bytes(b"x")
    said = json.loads((made.path / MARKER).read_text()) | marker
    (made.path / MARKER).write_text(json.dumps(said))
    return made.path


def swept(
    root: Path, in_progress: InProgress | None = None, *, dry_run: bool = False
) -> dict[str, bool]:
    found = sweep(root, DAY, SystemClock(), in_progress=in_progress, dry_run=dry_run)
    assert all(one.why for one in found), "the reason is told either way"
    return {one.path.name: one.removed for one in found}


def age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_w5_what_a_dead_owner_left_is_removed(root: Path, dead: int) -> None:
    path = attempt_dir(root, "e1", owner_pid=dead, owner_token="")
    assert swept(root) == {"task-1-e1": True}
    assert not path.exists()


def test_w5_what_a_living_owner_holds_is_kept_however_old(root: Path, living: int) -> None:
    path = attempt_dir(root, "e1", owner_pid=living, owner_token=token_of(living))
    mine = attempt_dir(root, "e2")
    age(path, 100 * DAY)
    assert swept(root) == {"task-1-e1": False, "task-1-e2": False}
    assert (path / "workspace" / "a").exists()
    assert (mine / "workspace" / "a").exists()


@pytest.mark.skipif(not token_of(os.getpid()), reason="this system does not tell when one started")
def test_w5_a_process_that_got_the_old_number_is_not_the_owner(root: Path, living: int) -> None:
    """The usual thing after a container restart: the same pid, another process."""
    earlier = f"{token_of(living).rpartition(':')[0]}:1"
    attempt_dir(root, "e1", owner_pid=living, owner_token=earlier)
    assert swept(root) == {"task-1-e1": True}


@pytest.mark.skipif(not token_of(os.getpid()), reason="this system has no /proc")
@pytest.mark.parametrize("part", [0, 1], ids=["boot", "PID namespace"])
def test_w5_an_owner_of_elsewhere_is_not_judged_by_its_number(
    root: Path, living: int, part: int
) -> None:
    """Its number means nothing here: the broker tells, and where nobody can be asked, the age."""
    parts = token_of(living).split(":")
    parts[part] = "1"
    path = attempt_dir(root, "e1", owner_pid=living, owner_token=":".join(parts))
    assert swept(root) == {"task-1-e1": False}
    assert swept(root, lambda *_: True) == {"task-1-e1": False}
    age(path, 2 * DAY)
    assert swept(root, lambda *_: True) == {"task-1-e1": False}, "the broker wins"
    assert swept(root, lambda *_: None, dry_run=True) == {"task-1-e1": True}
    age(path, 0)
    assert swept(root, lambda *_: False) == {"task-1-e1": True}


@pytest.mark.skipif(not token_of(os.getpid()), reason="this system has no /proc")
def test_w5_a_marker_of_an_older_version_does_not_say_the_namespace(
    root: Path, living: int, dead: int
) -> None:
    def old(pid: int, start: str) -> dict[str, object]:
        return {"owner_pid": pid, "owner_token": f"{token_of(living).partition(':')[0]}:{start}"}

    attempt_dir(root, "e1", **old(living, token_of(living).rpartition(":")[2]))
    gone = attempt_dir(root, "e2", **old(dead, "5"))
    assert swept(root) == {"task-1-e1": False, "task-1-e2": False}
    age(gone, 2 * DAY)
    assert swept(root) == {"task-1-e1": False, "task-1-e2": True}


@pytest.mark.skipif(not token_of(os.getpid()), reason="this system has no /proc")
def test_w5_a_dead_owner_that_nobody_reaped_is_dead(root: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    token = token_of(child.pid)
    assert is_alive(child.pid, token)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    attempt_dir(root, "e1", owner_pid=child.pid, owner_token=token)
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
def test_v6_without_a_marker_content_is_nobodys_to_remove(root: Path, marker: str | None) -> None:
    """Not even ours: any directory may be called as one of ours is, and hold a workspace."""
    path = attempt_dir(root, "e1")
    if marker is None:
        (path / MARKER).unlink()
    else:
        (path / MARKER).write_text(marker)
    age(path, 1000 * DAY)
    assert swept(root, lambda *_: False) == {"task-1-e1": False}
    assert (path / "workspace" / "a").read_bytes() == b"x"


@pytest.mark.parametrize("made", [(), ("draft",), ("draft", "workspace")], ids=str)
def test_v7_half_a_room_is_removed_when_it_is_old(root: Path, made: tuple[str, ...]) -> None:
    """Killed before the marker stood: there is nothing in it that could be lost."""
    attempt_dir(root, "e0")
    path = root / "task-1-e1"
    path.mkdir()
    if "draft" in made:
        (path / f"{MARKER}.123").touch()
    if "workspace" in made:
        (path / "workspace").mkdir()
    assert swept(root) == {"task-1-e0": False, "task-1-e1": False}, "it may be in the making"
    assert swept(root, lambda *_: True)["task-1-e1"] is False
    age(path, DAY + 60)
    assert swept(root)["task-1-e1"] is True
    assert not path.exists()


def test_v6_a_copy_of_a_room_is_not_the_room(root: Path, dead: int) -> None:
    """Somebody kept it to look at it: the marker in it names another directory."""
    path = attempt_dir(root, "e1", owner_pid=dead, owner_token="")
    shutil.copytree(path, root / "kept-to-look-at")
    assert swept(root) == {"kept-to-look-at": False, "task-1-e1": True}
    assert (root / "kept-to-look-at" / "workspace" / "a").exists()


@pytest.mark.parametrize("pid", [0, -1, 10**30, "1", None, [1]], ids=repr)
def test_w5_a_marker_that_names_no_process_has_no_owner(root: Path, pid: object) -> None:
    """Signals to 0 or -1 would mean whole groups; such a number is never asked about."""
    attempt_dir(root, "e1", owner_pid=pid)
    assert swept(root) == {"task-1-e1": True}


def test_w5_a_dry_run_removes_nothing(root: Path, dead: int) -> None:
    path = attempt_dir(root, "e1", owner_pid=dead)
    assert swept(root, dry_run=True) == {"task-1-e1": True}
    assert (path / "workspace" / "a").exists()


def jenkins(root: Path) -> Path:
    """Make what looks like an attempt directory and is somebody's work."""
    code = root / "jenkins-job" / "workspace" / "src" / "code.py"
    code.parent.mkdir(parents=True)
    code.write_text("print('mine')")
    age(root / "jenkins-job", 1000 * DAY)
    return code


def test_v6_a_root_that_is_not_ours_is_refused(root: Path, tmp_path: Path) -> None:
    """With the fix; nothing is put into it, and nothing of it is touched."""
    code = jenkins(root)
    for use in (
        lambda: swept(root),
        lambda: swept(root, dry_run=True),
        lambda: claim_root(root),
        lambda: LocalAttemptDirs(root, "worker0001", SystemClock()).enter(ATTEMPT, "e1"),
    ):
        with pytest.raises(WorkspaceError, match="holds 'jenkins-job'") as caught:
            use()
        assert "set PERAGO_WORKSPACE_ROOT to a directory of its own" in caught.value.remedy
    assert [path.name for path in root.iterdir()] == ["jenkins-job"]
    assert code.exists()


def test_v6_what_is_no_room_is_not_touched(root: Path, tmp_path: Path) -> None:
    """Also below a root that is ours: whatever somebody puts there stays."""
    attempt_dir(root, "e0")
    code = jenkins(root)
    theirs = root / "photos"
    theirs.mkdir(parents=True)
    (theirs / "holiday.jpg").write_bytes(b"x")
    age(theirs, 1000 * DAY)
    (root / ".perago-supervisor.lock").touch()
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "link").symlink_to(outside)
    (root / "task-1-e9").symlink_to(root / "task-1-e0")
    assert swept(root) == {"jenkins-job": False, "task-1-e0": False}
    assert (theirs / "holiday.jpg").exists()
    assert outside.exists()
    assert code.exists()


def test_a_root_of_an_older_version_is_taken_over(root: Path, dead: int) -> None:
    """It has no mark, but everything in it is recognisably ours."""
    attempt_dir(root, "e1", owner_pid=dead, owner_token="")
    (root / ROOT_MARKER).unlink()
    (root / ".perago-supervisor.lock").touch()
    (root / "task-2-e2").mkdir()  # Killed right after it was made.
    (root / "local-0123456789").mkdir()  # The part of a home.
    (root / "lost+found").mkdir()
    assert swept(root, dry_run=True)["task-1-e1"] is True
    assert not (root / ROOT_MARKER).exists(), "a dry run writes nothing"
    assert swept(root)["task-1-e1"] is True
    assert (root / ROOT_MARKER).exists()
    age(root / "local-0123456789", 1000 * DAY)
    assert "local-0123456789" not in swept(root), "its home sweeps it"


@pytest.mark.parametrize("content", [b"", b"{", b"[]"], ids=repr)
def test_a_root_whose_mark_was_lost_with_the_power_is_marked_again(
    root: Path, content: bytes
) -> None:
    attempt_dir(root, "e1")
    (root / ROOT_MARKER).write_bytes(content)
    attempt_dir(root, "e2")
    assert json.loads((root / ROOT_MARKER).read_text())["perago"]


def test_v7_a_sweep_that_was_cut_off_is_finished_by_the_next(root: Path, dead: int) -> None:
    """The marker goes last: what is left is known, or empty."""
    path = attempt_dir(root, "e1", owner_pid=dead, owner_token="")
    shutil.rmtree(path / "workspace")
    assert swept(root) == {"task-1-e1": True}
    path = attempt_dir(root, "e2")
    shutil.rmtree(path / "workspace")
    (path / MARKER).unlink()
    age(path, DAY + 60)
    assert swept(root) == {"task-1-e2": True}


def test_v7_what_is_written_while_a_room_is_removed_does_not_keep_it_for_ever(
    root: Path, dead: int
) -> None:
    """A thread of the body makes a name that the listing does not have; the marker stays."""
    path = attempt_dir(root, "e1", owner_pid=dead, owner_token="")

    def write_on() -> bool:
        (path / "late").touch()
        return False

    with pytest.raises(WorkspaceError, match="not empty"):
        remove_attempt_dir_of(root, "task-1", "e1", write_on)
    assert swept(root) == {"task-1-e1": True}
    assert not path.exists()


def test_v7_what_an_owner_could_not_remove_is_swept_while_it_lives(root: Path) -> None:
    """Time was up, or something was in the way: the owner goes on and the sweep tries again."""
    attempt_dirs = LocalAttemptDirs(root, "worker0001", SystemClock())
    made = attempt_dirs.enter(ATTEMPT, "e1")
    (made.workspace / "a").touch()
    assert swept(root) == {"task-1-e1": False}
    with pytest.raises(WorkspaceError, match="time is up"):
        attempt_dirs.leave(made, -1)
    assert swept(root) == {"task-1-e1": True}
    assert not made.path.exists()


def test_v6_a_mount_that_a_body_left_is_not_emptied_and_stays_named(
    root: Path, tmp_path: Path
) -> None:
    dataset = tmp_path / "dataset"
    dataset.mkdir()
    (dataset / "precious").write_bytes(b"1")
    attempt_dirs = LocalAttemptDirs(root, "worker0001", SystemClock())
    made = attempt_dirs.enter(ATTEMPT, "e1")
    (made.workspace / "data").mkdir()
    (made.workspace / "else").touch()
    try:
        with bound(dataset, made.workspace / "data"):
            with pytest.raises(WorkspaceError, match=r"workspace/data.*another file system"):
                attempt_dirs.leave(made, 30)
            (found,) = sweep(root, DAY, SystemClock())
            assert (found.removed, found.failed) == (False, True)
            assert "another file system" in found.why
            assert not (made.workspace / "else").exists(), "the rest of it is gone"
            assert (dataset / "precious").read_bytes() == b"1"
    except CannotMount as why:
        pytest.skip(str(why))
    assert swept(root) == {"task-1-e1": True}
    assert (dataset / "precious").read_bytes() == b"1"


def test_w5_an_absent_root_has_no_orphans(root: Path) -> None:
    assert swept(root) == {}


def test_w5_a_dead_executors_room_is_removed_by_its_name(root: Path) -> None:
    kept = attempt_dir(root, "e2")
    gone = attempt_dir(root, "e1")
    remove_attempt_dir_of(root, "task-1", "e1")
    assert not gone.exists()
    assert kept.exists()
    remove_attempt_dir_of(root, "task-1", "e1")
    remove_attempt_dir_of(root / "absent", "task-1", "e1")


def test_v6_what_a_body_put_in_the_place_of_a_dead_executors_room_stays(
    root: Path, tmp_path: Path
) -> None:
    """It has the name, and may be anything: a dataset that was moved there, then the process died.

    With its own modes: 0555 is how some mark what nobody shall change.
    """
    attempt_dir(root, "e1").rename(tmp_path / "aside")
    dataset = root / "task-1-e1"
    (dataset / "part").mkdir(parents=True)
    (dataset / "part" / "a").write_bytes(b"of others")
    dataset.chmod(0o555)
    with pytest.raises(WorkspaceError, match="no marker says that it is Perago's"):
        remove_attempt_dir_of(root, "task-1", "e1")
    assert (dataset / "part" / "a").read_bytes() == b"of others"
    assert dataset.stat().st_mode & 0o777 == 0o555


@pytest.mark.parametrize("made", [(), ("draft",), ("draft", "workspace")], ids=str)
def test_w5_half_a_room_of_a_dead_executor_is_removed(root: Path, made: tuple[str, ...]) -> None:
    attempt_dir(root, "e0")
    path = root / "task-1-e1"
    path.mkdir()
    if "draft" in made:
        (path / f"{MARKER}.123").touch()
    if "workspace" in made:
        (path / "workspace").mkdir()
    remove_attempt_dir_of(root, "task-1", "e1")
    assert not path.exists()


def test_w5_the_mode_of_a_dead_executors_room_is_no_obstacle(root: Path) -> None:
    path = attempt_dir(root, "e1")
    path.chmod(0)
    remove_attempt_dir_of(root, "task-1", "e1")
    assert not path.exists()


# --- two containers ----------------------------------------------------------------------------

IN_A_CONTAINER = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from perago.clock import SystemClock
    from perago.protocol.values import Attempt
    from perago.workspace.attempt_dirs import LocalAttemptDirs
    from perago.workspace.sweeper import sweep

    root, name = Path(sys.argv[1]), sys.argv[2]
    attempt = Attempt("workflow-1", "task-1", 0, "clean_ref", "clean")
    made = LocalAttemptDirs(root, name, SystemClock()).enter(attempt, name)
    (made.workspace / "a").write_text("work")
    print("ready", flush=True)
    for asked in sys.stdin:
        answer = {"unknown": None, "busy": True, "over": False}[asked.strip()]
        found = sweep(root, 86400.0, SystemClock(), in_progress=lambda *_: answer)
        print(*sorted(f"{one.path.name}={one.removed}" for one in found), flush=True)
    """
)


class Container:
    """A process in a PID namespace of its own, as in a container; the root is shared."""

    def __init__(self, root: Path, name: str) -> None:
        words = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
        self.process = subprocess.Popen(
            [*words, sys.executable, "-c", IN_A_CONTAINER, str(root), name],
            env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout
        assert self.process.stdout.readline() == "ready\n"

    def sweep(self, broker_says: str) -> dict[str, bool]:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(f"{broker_says}\n")
        self.process.stdin.flush()
        found = self.process.stdout.readline().split()
        return {name: text == "True" for name, _, text in (one.partition("=") for one in found)}

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.communicate(timeout=LIMIT)


@pytest.mark.skipif(
    shutil.which("unshare") is None
    or subprocess.run(["unshare", "--pid", "--fork", "true"], check=False).returncode != 0,
    reason="PID namespaces cannot be made here",
)
def test_w5_two_containers_on_one_root_leave_each_other_alone(root: Path) -> None:
    """Each one's processes have numbers that are free, or another's, in the other."""
    one, two = Container(root, "e1"), Container(root, "e2")
    try:
        for container in (one, two):
            for says in ("unknown", "busy"):
                assert container.sweep(says) == {"task-1-e1": False, "task-1-e2": False}
        assert swept(root) == {"task-1-e1": False, "task-1-e2": False}, "nor from outside"
        one.end()
        assert two.sweep("busy") == {"task-1-e1": False, "task-1-e2": False}
        assert (root / "task-1-e1" / "workspace" / "a").read_text() == "work"
        assert two.sweep("over") == {"task-1-e1": True, "task-1-e2": False}
    finally:
        one.end()
        two.end()
    assert swept(root, lambda *_: False) == {"task-1-e2": True}
