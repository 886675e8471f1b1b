"""What a body does to the directory it works in: V6, V7, S2, section 4."""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from perago import WorkspaceSpec, task
from perago.protocol.values import Status
from perago.stores.embedded import EmbeddedStore
from perago.testing import Lab
from perago.workspace import stamps
from tests.filesystems import CannotMount, bound, kind_of

GIVEN = {"ws/in.txt": "given", "ws/old.bin": "x" * 20_000}
PRECIOUS = {"precious": b"1", "part/too": b"2", "part/_temporary/kept": b"3"}


class How(BaseModel):
    how: str
    dataset: str = ""


class Done(BaseModel):
    pass


@task(name="rearrange", owner_email="a@b.c", workspace=WorkspaceSpec(prefix="ws"))
def rearrange(workspace: Path, params: How) -> Done:
    """Put something else in the place of the workspace."""
    dataset = Path(params.dataset)
    match params.how:
        case "link":
            shutil.rmtree(workspace)
            workspace.symlink_to(dataset)
        case "link aside":
            workspace.rename(workspace.with_name("aside"))
            workspace.symlink_to(dataset)
        case "link of the attempt directory":
            workspace.parent.rename(dataset.parent / "moved")
            workspace.parent.symlink_to(dataset)
        case "another attempt directory":
            workspace.parent.rename(dataset.parent / "moved")
            shutil.copytree(dataset, workspace)
        case "made anew":
            shutil.rmtree(workspace)
            workspace.mkdir()
            (workspace / "new.txt").write_text("new")
        case "change directory":
            os.chdir(workspace)
            (workspace / "new.txt").write_text("new")
        case "mmap":
            with (workspace / "old.bin").open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
                assert mapped[:1] == b"x"
                mapped[9_999] = ord("y")
    return Done()


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path / "lab")
    lab.commit(GIVEN)
    yield lab
    lab.close()


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    for name, content in PRECIOUS.items():
        (tmp_path / "dataset" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "dataset" / name).write_bytes(content)
    return tmp_path / "dataset"


def contents(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def attempt_dirs(lab: Lab) -> list[str]:
    return [path.name for path in lab.attempt_dirs.iterdir() if path.is_dir()]


@pytest.mark.parametrize("how", ["link", "link aside"])
def test_v6_a_link_in_the_place_of_the_workspace_is_neither_published_nor_followed(
    lab: Lab, dataset: Path, how: str
) -> None:
    head = lab.head
    run = lab.run(rearrange, {"how": how, "dataset": str(dataset)})
    assert run.status is Status.FAILED
    assert "directory '.' cannot be read: Not a directory" in run.reason
    assert lab.head == head
    assert contents(dataset) == PRECIOUS
    assert attempt_dirs(lab) == [], "the link is gone, and what it stood in"


@pytest.mark.parametrize("how", ["link of the attempt directory", "another attempt directory"])
def test_v6_an_attempt_directory_that_is_not_ours_any_more_is_left_alone(
    lab: Lab, dataset: Path, how: str
) -> None:
    head = lab.head
    run = lab.run(rearrange, {"how": how, "dataset": str(dataset)})
    assert run.status is Status.FAILED
    assert lab.head == head
    assert contents(dataset) == PRECIOUS
    if how == "another attempt directory":
        assert "not the directory that was made" in run.reason
        (attempt_dir,) = attempt_dirs(lab)
        assert contents(lab.attempt_dirs / attempt_dir / "workspace") == PRECIOUS
    assert "warning" in run.events, "the failed removal is logged"


def test_a_body_may_make_its_workspace_anew(lab: Lab) -> None:
    """As Spark does when it overwrites it: still a directory of its own in ours."""
    run = lab.run(rearrange, {"how": "made anew"})
    assert run.completed, run.reason
    assert run.files == {"ws/new.txt": b"new"}
    assert attempt_dirs(lab) == []


def test_v6_what_a_body_mounted_is_neither_published_nor_emptied(lab: Lab, dataset: Path) -> None:
    """The mount outlives the attempt; its directory is named, and goes when it can."""
    mounts = []

    @task(name="mounts", owner_email="a@b.c", workspace=WorkspaceSpec(prefix="ws"))
    def mounting(workspace: Path, params: How) -> Done:
        (workspace / "data").mkdir()
        mounts.append(bound(dataset, workspace / "data"))
        try:
            mounts[0].__enter__()
        except CannotMount as why:
            mounts.clear()
            pytest.skip(str(why))
        return Done()

    head = lab.head
    try:
        run = lab.run(mounting, {"how": ""})
        assert run.status is Status.FAILED
        assert "workspace publication does not support mounts: data" in run.reason
        assert lab.head == head
        assert contents(dataset) == PRECIOUS
        assert len(attempt_dirs(lab)) == 1
    finally:
        for mount in mounts:
            mount.__exit__(None, None, None)
    assert contents(dataset) == PRECIOUS


def test_section_4_a_body_that_changes_the_working_directory_spoils_nothing(lab: Lab) -> None:
    before = os.getcwd()  # noqa: PTH109 - the plain call is what is promised
    run = lab.run(rearrange, {"how": "change directory"})
    assert run.completed, run.reason
    assert os.getcwd() == before  # noqa: PTH109
    assert run.events.count("warning") == 1
    assert lab.run(rearrange, {"how": "made anew"}).completed
    assert attempt_dirs(lab) == []


# --- a change that no time tells of (S2) -------------------------------------------------------


@pytest.fixture(params=["disk", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A directory on disk, and one on tmpfs, which does not note the time of a mapped write."""
    if request.param == "disk":
        yield tmp_path
        return
    memory = Path("/dev/shm")  # noqa: S108 - it is where memory is
    if not memory.is_dir() or kind_of(memory) != "tmpfs":
        pytest.skip("there is no tmpfs at /dev/shm")
    with tempfile.TemporaryDirectory(dir=memory) as directory:
        assert not stamps.tell(Path(directory)), "this tmpfs does note it: the case has no fault"
        yield Path(directory)


class Slow(EmbeddedStore):
    """A download that takes its time, as a big one does: its files are not fresh afterwards."""

    def fetch(self, *given: Any) -> None:
        super().fetch(*given)
        time.sleep(0.06)  # the rest of the download


def test_s2_a_change_through_a_mapping_is_published(place: Path) -> None:
    lab = Lab(place / "lab", store=Slow(place / "store"))
    lab.commit(GIVEN)
    run = lab.run(rearrange, {"how": "mmap"})
    assert run.completed, run.reason
    assert run.files["ws/old.bin"] == b"x" * 9_999 + b"y" + b"x" * 10_000
    lab.close()
