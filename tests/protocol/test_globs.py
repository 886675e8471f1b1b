"""Glob patterns mean what ``pathlib`` means by them (T3, T6)."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perago.protocol.globs import matches, refuse_pattern
from perago.protocol.guard import Tree


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("a", "a", True),
        ("a", "b", False),
        ("a", "a/b", False),
        ("a", "x/a", False),
        ("*", "a", True),
        ("*", ".hidden", True),
        ("*", "a/b", False),
        ("*.csv", "t.csv", True),
        ("*.csv", "t.CSV", False),
        ("*.csv", "x/t.csv", False),
        ("?", "a", True),
        ("?", "ab", False),
        ("[ab]x", "bx", True),
        ("[!ab]x", "bx", False),
        ("[a-c]", "b", True),
        ("[", "[", True),
        ("[*]", "*", True),
        ("[*]", "a", False),
        ("a/*/c", "a/b/c", True),
        ("a/*/c", "a/c", False),
        ("a/*/c", "a/b/b/c", False),
        ("**/c", "c", True),
        ("**/c", "a/b/c", True),
        ("**/c", "a/b/cc", False),
        ("a/**/c", "a/c", True),
        ("a/**/c", "a/x/y/c", True),
        ("a/**/c", "b/a/c", False),
        ("a/**", "a/b", True),
        ("a/**", "a/b/c", True),
        ("a/**", "a", False),
        ("a/**", "ab/c", False),
        ("**", "a", True),
        ("**", "a/b", True),
        ("**/**", "a", True),
        ("**/**/c", "c", True),
        ("**/*.tmp", "a/b.tmp", True),
        ("**/x/**/y", "x/y", True),
        ("**/x/**/y", "a/x/b/x/y", True),
        ("**/x/**/y", "a/y/x", False),
        ("a.c", "abc", False),
        ("a+", "aa", False),
        ("*", "two\nlines", True),
        ("*.csv", "t.csv\n", False),
    ],
)
def test_a_pattern_fits_whole_paths(pattern: str, path: str, fits: bool) -> None:
    assert refuse_pattern(pattern) is None
    assert matches(pattern, path) is fits


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("", "empty"),
        ("/a", "absolute"),
        ("a//b", "segment ''"),
        ("a/", "segment ''"),
        ("./a", "segment '.'"),
        ("../a", "segment '..'"),
        ("a/../b", "segment '..'"),
        ("**a", "must stand alone"),
        ("a/b**", "must stand alone"),
        ("***", "must stand alone"),
        ("a\\b", "backslash"),
        ("a\0b", "NUL"),
    ],
    ids=ascii,
)
def test_t1_a_bad_pattern_is_refused_where_it_is_declared(pattern: str, why: str) -> None:
    assert why in (refuse_pattern(pattern) or "")


names = st.sampled_from(["a", "b", "ab", "A", ".h", "c.csv", "[", "a b"])
trees = st.lists(st.lists(names, min_size=1, max_size=4).map("/".join), max_size=8)
pattern_segments = st.sampled_from(
    ["a", "b", "ab", "*", "?", "**", "a*", "*b", "*.csv", "[ab]", "[!a]", "[a-c]?", ".*", "[[]"]
)
# A last '**' means directories only in some versions of pathlib and files too in others.
patterns = (
    st.lists(pattern_segments, min_size=1, max_size=4)
    .filter(lambda segments: segments[-1] != "**")
    .map("/".join)
)


@settings(deadline=None, max_examples=300)
@given(tree=trees, pattern=patterns)
def test_patterns_find_on_a_real_tree_what_pathlib_finds(tree: list[str], pattern: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        kept = _written(root, tree)
        found = {str(path.relative_to(root)) for path in root.glob(pattern)}
    assert set(Tree.of(kept).matching(pattern)) == found


def _written(root: Path, tree: list[str]) -> list[str]:
    """Make the files that can exist beside the earlier ones."""
    kept = []
    for path in tree:
        try:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).touch()
        except OSError:
            continue
        if (root / path).is_file():
            kept.append(path)
    # A directory made for a file that then could not exist holds nothing, so it is no content.
    for directory in sorted(root.rglob("*"), reverse=True):
        if directory.is_dir() and not any(directory.iterdir()):
            directory.rmdir()
    return kept


@settings(max_examples=300)
@given(
    path=st.lists(names, min_size=1, max_size=6).map("/".join),
    segments=st.lists(pattern_segments, min_size=1, max_size=5),
)
def test_any_depth_adds_nothing_when_it_is_repeated(path: str, segments: list[str]) -> None:
    once = "/".join(["**", *segments])
    twice = "/".join(["**", "**", *segments])
    assert matches(once, path) is matches(twice, path)


def test_a_hostile_pattern_does_not_explode() -> None:
    """Many ``**`` over a deep path: work grows with the product, not with the power."""
    deep = "/".join(["a"] * 400)
    assert not matches("/".join(["**", "a"] * 20) + "/b", deep)
    assert matches("/".join(["**", "a"] * 20), deep)
