"""Directories that are filled out of sight, as ``perago checkout`` does (V6)."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from perago.errors import UsageError
from perago.filesystem import trees
from perago.transfer.filling import filling, keep, refuse_used, tree_of, trying


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def canary(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "theirs"
    place.mkdir()
    (place / "data").write_text("precious")
    yield place
    assert [path.name for path in place.iterdir()] == ["data"]
    assert (place / "data").read_text() == "precious"


def write(draft: Path, name: str, content: str = "new") -> None:
    path = tree_of(draft) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def test_files_are_seen_when_all_are_there_with_the_modes_of_the_umask(directory: Path) -> None:
    before = os.umask(0o002)
    try:
        with filling(directory) as draft:
            write(draft, "a/b")
            write(draft, "c")
            assert stat.S_IMODE(draft.stat().st_mode) == 0o700
            assert [path.name for path in directory.iterdir()] == [draft.name]
    finally:
        os.umask(before)
    modes = {p.relative_to(directory).as_posix(): p.stat().st_mode for p in directory.rglob("*")}
    assert {name: oct(stat.S_IMODE(mode)) for name, mode in modes.items()} == {
        "a": "0o775",
        "a/b": "0o664",
        "c": "0o664",
    }


def test_of_one_that_fails_nothing_is_seen(directory: Path) -> None:
    def fail() -> None:
        with filling(directory) as draft:
            write(draft, "a")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(directory.iterdir()) == []


def test_what_a_killed_one_left_goes_and_a_living_one_is_left_alone(directory: Path) -> None:
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        with filling(directory) as draft:
            write(draft, "half")
            os.write(writer, b"!")
            signal.pause()
    os.read(reader, 1)
    with pytest.raises(UsageError, match="another checkout is filling"), filling(directory):
        pass
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reader)
    os.close(writer)
    assert len(list(directory.iterdir())) == 1
    with filling(directory) as draft:
        write(draft, "whole")
    assert [path.name for path in directory.iterdir()] == ["whole"]


@pytest.mark.parametrize("name", ["x", ".perago-checkout-mine"])
def test_a_directory_that_holds_something_is_refused(directory: Path, name: str) -> None:
    directory.mkdir()
    (directory / name).write_text("")
    for attempt in (refuse_used, lambda path: filling(path).__enter__()):
        with pytest.raises(UsageError, match="not empty"):
            attempt(directory)


def test_a_left_over_that_is_a_link_is_not_followed(directory: Path, canary: Path) -> None:
    directory.mkdir()
    (directory / f".perago-checkout-{'0' * 32}").symlink_to(canary)
    with pytest.raises(UsageError), filling(directory):
        pass


@pytest.mark.parametrize("kind", ["link", "file", "directory"])
def test_what_somebody_puts_there_meanwhile_is_neither_followed_nor_replaced(
    directory: Path, canary: Path, kind: str
) -> None:
    def fill() -> None:
        with filling(directory) as draft:
            write(draft, "name/data" if kind != "file" else "name")
            if kind == "link":
                (directory / "name").symlink_to(canary, target_is_directory=True)
            elif kind == "file":
                (directory / "name").write_text("precious")
            else:
                (directory / "name").mkdir()
                (directory / "name" / "theirs").write_text("precious")

    with pytest.raises(UsageError, match="another process put 'name' into"):
        fill()
    assert "new" not in {p.read_text() for p in directory.rglob("*") if p.is_file()}


def test_twins_that_bring_the_same_file_leave_one_whole(directory: Path) -> None:
    with filling(directory) as draft, trees.opened(tree_of(draft)) as tree:
        for content in ("first", "second"):
            with trying(draft) as place, trees.opened(place) as tries:
                (place / "0").write_text(content)
                keep(tries, "0", tree, "a/b")
        before = (tree_of(draft) / "a/b").stat().st_ino
        with trying(draft) as place:
            (place / "0").write_text("half")  # It came to nothing.
        assert (tree_of(draft) / "a/b").stat().st_ino == before
    assert (directory / "a/b").read_text() == "first"
    assert [path.name for path in directory.iterdir()] == ["a"]


def test_a_twin_that_comes_too_late_cannot_write_any_more(directory: Path) -> None:
    with filling(directory) as draft:
        write(draft, "a/b")
    with pytest.raises(FileNotFoundError), trying(draft):
        pass
    with pytest.raises(FileNotFoundError), trees.opened(tree_of(draft)):
        pass


def test_a_link_below_the_tree_is_not_followed(directory: Path, canary: Path) -> None:
    with filling(directory) as draft, trees.opened(tree_of(draft)) as tree:
        (tree_of(draft) / "a").symlink_to(canary, target_is_directory=True)
        with trying(draft) as place, trees.opened(place) as tries:
            (place / "0").write_text("new")
            with pytest.raises(OSError, match="Not a directory"):
                keep(tries, "0", tree, "a/b")
        (tree_of(draft) / "a").unlink()
