"""File guardrails over names: T3, T7."""

from __future__ import annotations

import pytest

from perago.protocol.guard import (
    FileGuard,
    ForbidGlob,
    RequireDir,
    RequireFile,
    RequireGlob,
    Tree,
)

TREE = Tree.of(["raw/a.csv", "raw/b.csv", "raw/deep/c.csv", "top.txt", ".hidden"])
EMPTY = Tree.of([])


def test_t7_directories_are_those_that_hold_a_file_at_any_depth() -> None:
    assert TREE.directories == {"raw", "raw/deep"}
    assert EMPTY.directories == frozenset()


@pytest.mark.parametrize(
    ("guard", "violation"),
    [
        (RequireFile("top.txt"), None),
        (RequireFile("raw/deep/c.csv"), None),
        (RequireFile("raw"), "'raw' is a directory, not a file"),
        (RequireFile("gone"), "file 'gone' is missing"),
        (RequireFile("TOP.txt"), "file 'TOP.txt' is missing"),
        (RequireDir("raw"), None),
        (RequireDir("raw/deep"), None),
        (RequireDir("top.txt"), "'top.txt' is a file, not a directory"),
        (RequireDir("gone"), "directory 'gone' is missing or holds no file"),
        (RequireGlob("raw/*.csv"), None),
        (RequireGlob("raw/*.csv", 2, 2), None),
        (RequireGlob("raw/*.csv", 3), "2 paths match 'raw/*.csv', at least 3 required"),
        (RequireGlob("raw/*.csv", 0, 1), "2 paths match 'raw/*.csv', at most 1 allowed"),
        (RequireGlob("**/*.csv", 3, 3), None),
        (RequireGlob("raw/*", 3, 3), None),  # two files and one directory
        (RequireGlob("*.json"), "0 paths match '*.json', at least 1 required"),
        (RequireGlob("*.json", 0), None),
        (RequireGlob("*.json", 0, 0), None),
        (ForbidGlob("*.json"), None),
        (ForbidGlob("*.txt"), "'top.txt' matches the forbidden '*.txt'"),
        (ForbidGlob("**/*.csv"), "'raw/a.csv' and 2 more matches the forbidden '**/*.csv'"),
        (ForbidGlob("raw/deep"), "'raw/deep' matches the forbidden 'raw/deep'"),
    ],
    ids=str,
)
def test_t3_a_guard_says_what_is_wrong(guard: FileGuard, violation: str | None) -> None:
    assert isinstance(guard, FileGuard)
    assert guard.violation(TREE) == violation


@pytest.mark.parametrize(
    ("guard", "passes"),
    [
        (RequireFile("a"), False),
        (RequireDir("a"), False),
        (RequireGlob("**"), False),
        (RequireGlob("**", 0), True),
        (ForbidGlob("**"), True),
    ],
    ids=str,
)
def test_t3_an_empty_workspace_is_judged_too(guard: FileGuard, passes: bool) -> None:
    assert (guard.violation(EMPTY) is None) is passes


@pytest.mark.parametrize(
    ("guard", "text"),
    [
        (RequireFile("a"), "require_file('a')"),
        (RequireDir("a"), "require_dir('a')"),
        (RequireGlob("*"), "require_glob('*', min_count=1)"),
        (RequireGlob("*", 0, 3), "require_glob('*', min_count=0, max_count=3)"),
        (ForbidGlob("*"), "forbid_glob('*')"),
    ],
    ids=str,
)
def test_t3_a_guard_names_itself_as_it_was_written(guard: FileGuard, text: str) -> None:
    assert str(guard) == text


def test_matches_are_sorted_and_each_is_listed_once() -> None:
    assert TREE.matching("raw/**") == ("raw/a.csv", "raw/b.csv", "raw/deep", "raw/deep/c.csv")
