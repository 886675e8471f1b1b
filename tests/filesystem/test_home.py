"""A home is its owner's alone, also one that an earlier version left open to everybody."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from perago.app.local import Home
from perago.errors import RuntimeConfigError
from perago.filesystem import home, roots


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home"


def fill(path: Path) -> None:
    """Open everything a home has, and put something into it."""
    home = Home(path, path / "rooms")
    home.store.create_repository("demo")
    home.store.put("demo", "main", "a.txt", b"content")
    home.store.commit_branch("demo", "main", "first")
    home.state.runs(1)
    home.events.append([(0.0, "e", "w", "t", 0, "step", "task", "claimed", "{}")])
    home.locks.mkdir()
    home.close()


def open_to_others(path: Path) -> list[str]:
    found = [path, *path.rglob("*")]
    return sorted(
        f"{each.relative_to(path.parent)} {stat.S_IMODE(each.lstat().st_mode):o}"
        for each in found
        if not each.is_symlink() and each.lstat().st_mode & 0o077
    )


def as_in_earlier_versions(path: Path) -> None:
    (path / roots.MARK).unlink()
    for each in (path, *path.rglob("*")):
        each.chmod(0o755 if each.is_dir() else 0o644)


def test_a_new_home_is_for_its_owner_alone_whatever_the_umask_is(path: Path) -> None:
    fill(path)
    (path / "locks").chmod(0o700)  # Made by this test.
    assert open_to_others(path) == []


def test_a_home_that_others_could_read_is_closed_and_says_so_once(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(path)
    as_in_earlier_versions(path)
    with caplog.at_level(logging.WARNING, "perago"):
        Home(path, path / "rooms").store.close()
        Home(path, path / "rooms").store.close()
    assert open_to_others(path) == []
    assert caplog.text.count("other users of this machine could look into") == 1
    assert Home(path, path / "rooms").store.listing("demo", "main", "") is not None


def test_links_in_a_home_are_not_followed_when_it_is_closed(path: Path, tmp_path: Path) -> None:
    fill(path)
    outside = tmp_path / "outside"
    (outside / "below").mkdir(parents=True)
    (outside / "file").write_text("of somebody")
    (path / "store" / "link").symlink_to(outside)
    (path / "dev").symlink_to(outside)
    as_before = open_to_others(outside)
    path.chmod(0o755)
    (path / "store").chmod(0o755)
    home.claim(path)
    assert open_to_others(outside) == as_before


def test_a_directory_of_others_is_refused_and_stays_as_it_is(path: Path) -> None:
    path.mkdir(mode=0o755)
    (path / "thesis.tex").write_text("precious")
    with pytest.raises(RuntimeConfigError, match="did not make") as caught:
        fill(path)
    assert "PERAGO_HOME" in str(caught.value)
    assert [each.name for each in path.iterdir()] == ["thesis.tex"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o755


def test_a_home_among_other_files_stays_usable_and_only_it_is_closed(path: Path) -> None:
    fill(path)
    as_in_earlier_versions(path)
    (path / "notes.txt").write_text("of the same user")
    home.claim(path)
    assert open_to_others(path) == ["home 755", "home/notes.txt 666"]


def test_a_home_is_no_cache(path: Path) -> None:
    home.claim(path)
    with pytest.raises(RuntimeConfigError, match="is a home of Perago already"):
        roots.claim(path, roots.CACHE, lambda _: True)
