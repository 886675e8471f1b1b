"""Z2: by which column the rows of two versions are told apart."""

from __future__ import annotations

import pytest

from perago.protocol.table_comparison import choose_key


@pytest.mark.parametrize(
    ("asked", "common", "unique", "key", "why"),
    [
        ("", ["a", "b"], ["a"], "a", "the only column without repeats"),
        ("", ["a", "b"], ["a", "b"], None, "several columns"),
        ("", ["a", "b"], [], None, "no column tells rows apart"),
        ("b", ["a", "b"], ["a", "b"], "b", "told apart by 'b'"),
        ("b", ["a", "b"], ["a"], None, "'b' does not tell rows apart"),
        ("c", ["a", "b"], ["a"], None, "'c' is not a column of both"),
        ("c", [], [], None, "'c' is not a column of both"),
    ],
)
def test_the_key_of_a_comparison(
    asked: str, common: list[str], unique: list[str], key: str | None, why: str
) -> None:
    found, told = choose_key(asked, common, unique)
    assert found == key
    assert why in told
