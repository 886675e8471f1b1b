"""Every console of the pages is typed into a shell, in order, and shows what the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.consoles import Ids, commands, expression, missing, missing_from_screen
from tests.docs.plays import PLAYS, clean_environment, play
from tests.docs.shell import Piped


@pytest.mark.parametrize("page", PLAYS)
def test_the_consoles_of_a_page(page: str, tmp_path: Path) -> None:
    with Piped(tmp_path, clean_environment()) as shell:
        play(page, shell, tmp_path)


def test_a_console_is_commands_and_what_they_show() -> None:
    first, second = commands("excerpt\n$ perago log\na\nb\n$ perago runs &\n(Pdb) p x\n")
    assert (first.command, first.shown, first.in_background) == ("perago log", ("a", "b"), False)
    assert (second.in_background, second.keys) == (True, ("p x",))


@pytest.mark.parametrize(
    ("shown", "output", "same"),
    [
        (
            "✓ count  published f024a4069072  +1  0.09 s",
            "✓ count  published 0123456789ab  +1  3 s",
            True,
        ),
        (
            "✓ count  published f024a4069072  +1  0.09 s",
            "✓ count  published 0123456789ab  +2  3 s",
            False,
        ),
        ("a  2026-11-15 04:28:38  b", "a 2027-01-01 00:00:00   b", True),
        ("ready in words: a, ...", "ready in words: a, b, c", True),
        ("at http://localhost:8000 as", "at http://127.0.0.1:43211 as", True),
        ("body  0.6 ms  ━━", "body  11 ms  ━━━━━━", True),
        ("3 files", "33 files", False),
        ("3 files", "3 files of x", False),
    ],
)
def test_a_line_is_compared_as_a_reader_does(shown: str, output: str, same: bool) -> None:
    assert (missing([shown], [output], Ids()) is None) is same


def test_lines_are_looked_for_in_their_order() -> None:
    assert missing(["a", "...", "b"], ["a", "x", "b"], Ids()) is None
    assert missing(["b", "a"], ["a", "b"], Ids()) == "a"


def test_one_id_of_the_page_is_one_id_of_the_run() -> None:
    ids = Ids()
    assert missing(["f024a4069072"], ["0123456789ab"], ids) is None
    assert ids.in_command("perago diff f024a406") == "perago diff 01234567"
    assert missing(["again f024a4069072"], ["again fedcba987654"], ids)
    with pytest.raises(AssertionError, match="before it has shown it"):
        ids.in_command("perago diff 8fc110329de1")


def test_ids_are_told_from_words_and_numbers() -> None:
    assert expression("decade 1234567 deadbeef 1.84.0 5d88fbfa2e1e")[1] == ["5d88fbfa2e1e"]


def test_a_narrow_screen_wraps_between_words() -> None:
    screen = ["✗ count  post guardrail: file 'longest.csv'", "is missing; correct the task  0.01 s"]
    shown = ["✗ count  post guardrail: file 'longest.csv' is missing; correct the task  0.09 s"]
    assert missing_from_screen(shown, screen, Ids()) is None
    assert missing_from_screen([*shown, "more"], screen, Ids()) == "more"
