"""Where a person's disk is full, one sentence says what, where and what to do (Q12)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from perago.human.directory import MARKER
from tests.filesystems import CannotMount, fill, mounted
from tests.human.project import Project, contents, snapshot, step

ROOM = 64 << 10
FULL = "No space left on device"


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """Give a directory on a disk with little room."""
    try:
        with mounted("tmpfs", tmp_path / "disk", "64k") as found:
            yield found
    except CannotMount as why:
        pytest.skip(str(why))


def only_sentence(text: str) -> str:
    """Return the one line that was said."""
    (line,) = text.splitlines()
    assert "[Errno" not in line
    assert "Traceback" not in line
    return line.removeprefix("error: ")


def test_take_says_that_the_disk_of_the_person_is_full(project: Project, small: Path) -> None:
    data = project.directory / "data"
    for number in range(3):
        (data / f"long-{number}.txt").write_bytes(bytes(ROOM))
    project.run(step("correct"))
    said = project.perago("human", "take", "correct", str(small / "fix"))
    assert said.code == 1, said
    assert only_sentence(said.err) == (
        f"the files of the step cannot be copied to {small / 'fix'}: {FULL}; make room there or"
        " name another directory, and take the step again"
    )
    assert contents(small) == {}
    assert project.waiting()[0].claimed_by == ()


def test_take_says_that_the_edits_do_not_fit(project: Project, small: Path) -> None:
    project.run(step("correct"))
    files = project.take("correct", "fix")
    (files / "lyrics.txt").write_bytes(bytes(2 * ROOM))
    before = snapshot(files)
    said = project.perago("human", "take", "correct", str(small / "again"), "--edits", "fix")
    assert said.code == 2, said
    assert only_sentence(said.err) == (
        f"your edits cannot be copied to {small / 'again'}: {FULL}; make room there or name"
        f" another directory, and take the step again; {files.parent} is untouched"
    )
    assert contents(small) == {}
    assert snapshot(files) == before


@pytest.mark.parametrize("pages", [0, 4, 8])
def test_a_directory_that_is_seen_was_taken(project: Project, small: Path, pages: int) -> None:
    """However little room there is, the files are there with their marker, or nothing is."""
    project.run(step("correct"))
    filler = fill(small, pages)
    said = project.perago("human", "take", "correct", str(small / "fix"))
    filler.unlink()
    if said.code == 0:
        assert (small / "fix" / MARKER).exists()
        return
    line = only_sentence(said.err)
    assert FULL in line
    assert str(small / "fix") in line
    assert contents(small) == {}
    assert project.perago("human", "take", "correct", str(small / "fix")).code == 0
