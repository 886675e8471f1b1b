"""Bodies that change the working directory, also beside each other (section 4)."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from perago.attempt.working_directory import in_place
from tests.patience import LIMIT


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    return tmp_path / "home"


def test_a_body_that_stays_is_not_noticed(home: Path) -> None:
    moved: list[str] = []
    with in_place(lambda: moved.append("moved")):
        pass
    assert (moved, Path.cwd()) == ([], home)


@pytest.mark.parametrize("gone", [False, True], ids=["still there", "removed since"])
def test_a_body_that_went_elsewhere_is_brought_back(home: Path, tmp_path: Path, gone: bool) -> None:
    moved: list[str] = []

    def body() -> None:
        (tmp_path / "away").mkdir()
        os.chdir(tmp_path / "away")
        if gone:
            (tmp_path / "away").rmdir()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), in_place(lambda: moved.append("moved")):
        body()
    assert (moved, Path.cwd()) == (["moved"], home)


def test_a_home_that_was_renamed_is_still_home(home: Path, tmp_path: Path) -> None:
    with in_place(lambda: None):
        os.chdir(tmp_path)
        home.rename(tmp_path / "renamed")
    assert Path.cwd() == tmp_path / "renamed"


def test_a_process_without_a_working_directory_is_none_the_worse(
    home: Path, tmp_path: Path
) -> None:
    home.rmdir()
    with in_place(lambda: None):
        os.chdir(tmp_path)
    os.chdir(tmp_path)


def test_threads_have_one_and_the_first_to_leave_puts_it_back(home: Path, tmp_path: Path) -> None:
    """The one that came while the other was away must not take that for its home."""
    moved: list[str] = []
    away, done = threading.Event(), threading.Event()

    def one() -> None:
        with in_place(lambda: moved.append("one")):
            os.chdir(tmp_path)
            away.set()
            done.wait(LIMIT)

    thread = threading.Thread(target=one)
    thread.start()
    away.wait(LIMIT)
    with in_place(lambda: moved.append("two")):
        assert Path.cwd() == tmp_path
    assert (moved, Path.cwd()) == (["two"], home)
    done.set()
    thread.join(LIMIT)
    assert (moved, Path.cwd()) == (["two"], home)
