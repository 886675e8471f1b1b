"""Every console of the pages is typed into a shell, in order, and shows what the page shows."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from perago.dev import ConductorEndpoint, LakeFSEndpoint
from tests.docs.consoles import Ids, commands, expression, missing, missing_from_screen
from tests.docs.pages import fenced, guides
from tests.docs.plays import PLAYS, chains, play
from tests.docs.shell import Piped
from tests.environment import clean_environment
from tests.newcomer.__main__ import HOW_TOS, IN_THE_CLONE, in_a_terminal
from tests.typescript.project import QUIET, Package

NOT_PLAYED = {
    "README.md": 2,
    "docs/howto/deploy.md": 4,
    "docs/howto/register.md": 1,
    "docs/howto/use-spark.md": 1,
    "docs/howto/use-the-page.md": 1,
    "docs/howto/write-a-typescript-task.md": 1,
}
"""How many blocks of a page say that they are not played, with the reason before the block."""


@pytest.mark.parametrize("pages", chains(), ids=lambda pages: Path(pages[0]).stem)
def test_the_consoles_of_pages(
    pages: tuple[str, ...], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    programs = {program for page in pages for program in PLAYS[page].programs}
    if absent := sorted(program for program in programs if not shutil.which(program)):
        pytest.skip(f"this machine has no {', '.join(absent)}")
    environment = clean_environment()
    for server in PLAYS[pages[0]].servers:
        environment |= SERVERS[server](request)
    with Piped(tmp_path, environment) as shell:
        play(pages, shell, tmp_path)


def _lakefs(request: pytest.FixtureRequest) -> dict[str, str]:
    endpoint: LakeFSEndpoint = request.getfixturevalue("lakefs_server")
    return {
        "LAKECTL_SERVER_ENDPOINT_URL": endpoint.endpoint,
        "LAKECTL_CREDENTIALS_ACCESS_KEY_ID": endpoint.access_key_id,
        "LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY": endpoint.secret,
    }


def _conductor(request: pytest.FixtureRequest) -> dict[str, str]:
    endpoint: ConductorEndpoint = request.getfixturevalue("conductor_server")
    return {"CONDUCTOR_SERVER_URL": endpoint.url}


def _typescript(request: pytest.FixtureRequest) -> dict[str, str]:
    """Give the reader Node, and the package where ``make typescript`` puts it."""
    directory: Path = request.getfixturevalue("tmp_path_factory").mktemp("clone")
    package = Package.at(directory / "made")
    (directory / "dist").mkdir()
    shutil.copy(package.packed(), directory / "dist")
    path = f"{package.node.directory}{os.pathsep}{clean_environment()['PATH']}"
    return {"PATH": path, "CLONE": str(directory)} | QUIET


SERVERS = {"lakefs": _lakefs, "conductor": _conductor, "typescript": _typescript}


def test_every_console_is_played_or_says_why_not() -> None:
    """A guide shows commands in consoles; the list of those that are not played is this one."""
    marked: dict[str, int] = {}
    for page in guides():
        shown = [block for block in fenced(page) if block.language in {"console", "sh", "text", ""}]
        marked |= {page: count} if (count := sum(bool(block.reason) for block in shown)) else {}
        played = [block for block in shown if not block.reason]
        assert {block.language for block in played} <= {"console"}, page
        assert not played or page in PLAYS, page
    assert marked == NOT_PLAYED


def test_a_page_follows_one_that_is_played_before() -> None:
    pages = list(PLAYS)
    assert [page for page in pages if PLAYS[page].follows not in {"", *pages}] == []
    assert sorted(page for chain in chains() for page in chain) == sorted(pages)


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
    assert missing(["another 00471fb3373e"], ["another 0123456789ab"], ids)
    with pytest.raises(AssertionError, match="before it has shown it"):
        ids.in_command("perago diff 8fc110329de1")


def test_ids_are_told_from_words_and_numbers() -> None:
    assert expression("decade 1234567 deadbeef 1.84.0 5d88fbfa2e1e")[1] == ["5d88fbfa2e1e"]


def test_a_narrow_screen_wraps_between_words() -> None:
    screen = ["✗ count  post guardrail: file 'longest.csv'", "is missing; correct the task  0.01 s"]
    shown = ["✗ count  post guardrail: file 'longest.csv' is missing; correct the task  0.09 s"]
    assert missing_from_screen(shown, screen, Ids()) is None
    assert missing_from_screen([*shown, "more"], screen, Ids()) == "more"


def test_a_narrow_screen_folds_cells() -> None:
    screen = ["count  2  CountParams ->   1", "          Counted            ", "top  1  Top  1"]
    assert missing_from_screen(["count  2  CountParams -> Counted  1"], screen, Ids()) is None
    assert missing_from_screen(["count  2  CountParams -> Top  1"], screen, Ids())


def test_a_narrow_screen_may_have_columns_in_another_order() -> None:
    screen = ["✓  count  0.3 s  published 0123456789ab  +1", "✓  top  0.1 s  read-only"]
    shown = ["✓ count  published f024a4069072  +1  0.09 s", "✓ top  read-only  0.01 s"]
    ids = Ids()
    assert missing_from_screen(shown, screen, ids) is None
    assert ids.real("f024a4069072") == "0123456789ab"
    assert missing_from_screen([shown[0].replace("+1", "+2")], screen, Ids())
    typed = "printf 265caaf21f214c46acfc6bb175d53f08"
    assert missing_from_screen(["554ea6b2  words"], [typed, "0123abcd words"], ids) is None
    assert ids.real("554ea6b2") == "0123abcd"
    assert missing_from_screen(shown[::-1], screen, Ids()) is None


def test_a_newcomer_follows_pages_that_start_what_they_need() -> None:
    for page in (*IN_THE_CLONE, *HOW_TOS):
        assert (PLAYS[page].servers, PLAYS[page].follows) == ((), ""), page


def test_without_tmux_the_chore_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AssertionError, match="needs tmux: install it"):
        in_a_terminal(tmp_path)
