"""Z2, Z5: a directory is listed a part at a time, and what is below its directories is not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perago.protocol.values import ObjectInfo
from perago.ui.levels import (
    MOST_ENTRIES,
    STEP,
    Level,
    LevelLine,
    behind,
    crumbs,
    entry_of,
    read_level,
)


class Keys:
    """A listing that counts how much of it was read."""

    def __init__(self, keys: Sequence[str], directory: str = "") -> None:
        self._infos = [ObjectInfo(key, len(key), "") for key in sorted(set(keys))]
        self._directory = directory
        self.questions = self.read = 0

    def page(self, after: str, limit: int) -> Sequence[ObjectInfo]:
        found = [
            info
            for info in self._infos
            if info.key.startswith(self._directory) and info.key > after
        ][:limit]
        self.questions += 1
        self.read += len(found)
        return found


def whole(
    keys: Keys, directory: str, most: int = MOST_ENTRIES, step: int = STEP
) -> list[LevelLine]:
    found: list[LevelLine] = []
    after = ""
    while True:
        level = read_level(keys.page, directory, after, most, step)
        found += level.entries
        if not level.following:
            return found
        after = level.following


names = st.lists(
    st.text(alphabet=["a", "b", "/", "-", "0", "\U0010ffff", "é"], min_size=1, max_size=6),
    max_size=40,
)


@settings(deadline=None)
@given(names, st.sampled_from(["", "a/", "a/b/", "/"]), st.integers(1, 5), st.integers(1, 5))
def test_every_entry_is_listed_once_whatever_the_size_of_pages(
    keys: list[str], directory: str, most: int, step: int
) -> None:
    found = whole(Keys(keys, directory), directory, most, step)
    expected = {
        entry_of(directory, ObjectInfo(key, len(key), ""))
        for key in keys
        if key.startswith(directory)
    }
    assert len(found) == len(set(found))
    assert set(found) == expected
    assert [entry.key for entry in found] == sorted(entry.key for entry in found)


def test_a_crowded_directory_is_skipped_by_its_last_possible_key() -> None:
    keys = Keys([*(f"many/{number:06}" for number in range(20_000)), "zebra"])
    level = read_level(keys.page, "")
    assert [entry.name for entry in level.entries] == ["many/", "zebra"]
    assert (keys.questions, keys.read) == (2, 257)


def test_crowded_directories_end_a_page_early() -> None:
    keys = Keys([f"d{top:04}/{number}" for top in range(100) for number in range(300)])
    level = read_level(keys.page, "")
    assert 0 < len(level.entries) < 100
    assert keys.questions == 40
    assert len(whole(keys, "")) == 100


def test_long_names_end_a_page_early() -> None:
    keys = Keys([f"{number:03}" + "\u202e" * 300 for number in range(100)])
    level = read_level(keys.page, "")
    assert 0 < len(level.entries) < 20
    assert len(whole(keys, "")) == 100


@pytest.mark.parametrize(
    ("directory", "key", "entry"),
    [
        ("", "a", LevelLine("a", "a", 7)),
        ("", "a/b/c", LevelLine("a/", "a/")),
        ("a/", "a/b", LevelLine("a/b", "b", 7)),
        ("a/", "a/", LevelLine("a/", "", 7)),
        ("a/", "a//b", LevelLine("a//", "/")),
        ("", "/a", LevelLine("/", "/")),
        ("", "../x", LevelLine("../", "../")),
    ],
)
def test_what_a_key_is_on_a_level(directory: str, key: str, entry: LevelLine) -> None:
    assert entry_of(directory, ObjectInfo(key, 7, "")) == entry


def test_nothing_below_a_directory_comes_after_its_last_possible_key() -> None:
    longest = "a/" + "\U0010ffff" * 255
    assert longest < behind("", "a/") < "a0"
    assert behind("a/", "a/") == "a/"
    assert behind("", "a") == "a"


def test_an_empty_version_has_one_empty_page() -> None:
    assert read_level(Keys([]).page, "") == Level(())


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("", []),
        ("a", [("a", "a")]),
        ("a/", [("a/", "a/")]),
        ("a/b", [("a/", "a/"), ("b", "a/b")]),
        ("a//b/", [("a/", "a/"), ("/", "a//"), ("b/", "a//b/")]),
        ("/", [("/", "/")]),
    ],
)
def test_the_parts_of_a_path(path: str, expected: list[tuple[str, str]]) -> None:
    assert crumbs(path) == expected
