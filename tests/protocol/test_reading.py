"""JSON from outside is read within bounds, and what is beyond them is one sentence."""

from __future__ import annotations

import json

import pytest

from perago.protocol.plain import MOST_DEPTH
from perago.protocol.reading import OutOfBoundsError, depth, read_json


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 200_000, "nested more than 200 deep"),
        ('{"a":' * 100_000, "nested more than 200 deep"),
        ("[" * 201 + "]" * 201, "nested more than 200 deep"),
        ("9" * 401, "more than 400 digits"),
        ("0." + "9" * 5000, "more than 400 digits"),
        ("1e999", "too large"),
        ("-1e999", "too large"),
    ],
)
def test_what_is_beyond_the_bounds_is_said_in_a_sentence(text: str, why: str) -> None:
    with pytest.raises(OutOfBoundsError, match=why):
        read_json(text)


@pytest.mark.parametrize("value", [None, 1, 1.5, "x", [], {}, [[{"a": [1]}]], {"a": {"b": []}}])
def test_what_is_within_them_is_read(value: object) -> None:
    assert read_json(json.dumps(value)) == value


def test_the_deepest_that_may_be_is_read() -> None:
    assert read_json("[" * MOST_DEPTH + "]" * MOST_DEPTH) is not None


def test_depth_counts_lists_and_objects_in_each_other() -> None:
    assert [depth(v) for v in (1, [], {}, [1], [[1]], {"a": [1, {"b": 2}]})] == [0, 1, 1, 1, 2, 3]


@pytest.mark.parametrize(
    "text", ['"\\ud800"', '{"a": ["\\uDFFF x"]}', '{"\\ud83d": 1}', '"\udcff"', b'"\\ud800"']
)
def test_half_of_a_character_is_refused(text: str | bytes) -> None:
    """No store and no engine could carry it: it would fail where it is written."""
    with pytest.raises(OutOfBoundsError, match="half of a character"):
        read_json(text)


@pytest.mark.parametrize("text", ['"\\ud83d\\ude00"', '"😀"', '"\\\\ud800"', '"\\u00e9"'])
def test_whole_characters_are_read_however_they_are_written(text: str) -> None:
    assert read_json(text) == json.loads(text)
