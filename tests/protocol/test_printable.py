"""Names from outside, printed for people: one line each, and nothing that acts on a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perago.protocol.printable import printable, printable_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("data/été.txt", "data/été.txt"),
        ("back\\slash", "back\\slash"),
        ("a\n+ forged", "a\\n+ forged"),
        ("a\r+ forged", "a\\r+ forged"),
        ("a\\n\n", "a\\\\n\\n"),
        ("\x1b[2Kgone", "\\x1b[2Kgone"),
        ("evil\u202etxt.exe", "evil\\u202etxt.exe"),
        ("a\u2028b", "a\\u2028b"),
        ("a\x85b\x9b31m", "a\\x85b\\x9b31m"),
        ("lone\udcff", "lone\\udcff"),
        ("\ue000", "\\ue000"),
    ],
)
def test_what_cannot_be_seen_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text())
def test_all_that_is_shown_can_be_seen(text: str) -> None:
    assert printable(text).isprintable()


@given(st.text(st.characters(categories=["Cc", "Ll"], include_characters="\\")), st.text())
def test_two_texts_never_look_the_same(one: str, other: str) -> None:
    escaped = not one.isprintable() and not other.isprintable()
    if escaped and one != other:
        assert printable(one) != printable(other)


def test_the_lines_of_a_long_text_are_set_in() -> None:
    assert printable_lines("one\ntwo\x1b\n+ three\n") == "one\n  two\\x1b\n  + three"
