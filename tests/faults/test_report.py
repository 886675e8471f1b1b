"""The page of the fault report, from results that are made up."""

from __future__ import annotations

from pathlib import Path

from tests.faults.families import FAMILIES
from tests.faults.page import Case, Machine, Result, render
from tests.faults.paths import AFTER_ABANDONED, POINTS_OF
from tests.faults.report import cases_of, joined

MACHINE = Machine(2, 24, "Linux x86_64", "3.11.7", "2026-01-02")
ROOT = Path(__file__).parents[2]
XML = """<testsuites><testsuite name="pytest">
<testcase classname="tests.faults.test_kills" name="test_kill[kill/claimed/SIGKILL/merge-head]"
 time="1.5"/>
<testcase classname="tests.faults.test_pauses" name="test_pause[pause/decision/SIGSTOP/merge-head]"
 time="0.25"><properties><property name="documented" value="V3: gone"/></properties></testcase>
<testcase classname="tests.faults.test_kills" name="test_v8" time="1"><failure message="no"/>
</testcase>
<testcase classname="tests.faults.test_kills" name="test_x" time="1"><skipped/></testcase>
</testsuite></testsuites>"""


def test_what_pytest_wrote_is_read() -> None:
    killed, paused, failed, skipped = cases_of(XML)
    assert killed.id == "kill/claimed/SIGKILL/merge-head"
    assert killed.test == "tests/faults/test_kills.py::test_kill"
    assert (killed.outcome, killed.seconds, killed.documented) == ("survived", 1.5, "")
    assert paused.documented == "V3: gone"
    assert (failed.id, failed.outcome) == ("", "failed")
    assert skipped.outcome == "failed"  # What was not run has not survived.


def test_results_of_some_files_replace_their_older_ones() -> None:
    old = Result("kill", "x", 10, [case("a", "failed"), case("b")])
    new = Result("kill", "x", 2.5, [case("a"), case("c")])
    found = joined(old, new)
    assert [(case.id, case.outcome) for case in found.cases] == [
        ("a", "survived"),
        ("b", "survived"),
        ("c", "survived"),
    ]
    assert found.seconds == 12.5


def case(name: str, outcome: str = "survived", documented: str = "") -> Case:
    return Case(name, "tests/x.py::test", outcome, 1.0, documented)


def test_the_page_counts_tables_and_tells_what_cannot_hold() -> None:
    results = [
        Result(
            "kill",
            "kill -9",
            61.4,
            [
                case("kill/merge sent/SIGKILL/merge-head"),
                case("kill/claimed/SIGKILL/merge-head"),
                case("kill/claimed/SIGKILL/merge-hard"),
                case("kill/claimed/SIGKILL/read-only"),
                case("kill/applied/SIGKILL/merge-hard", "failed"),
                case("another name"),
            ],
        ),
        Result(
            "pause",
            "SIGSTOP",
            10,
            [
                case("pause/decision/SIGSTOP/replace-head", documented="V3: taken"),
                case("pause/decision/SIGSTOP/replace-hard"),
            ],
        ),
        Result("network", "calls", 5, [case("network/merge/lost/merge-hard")]),
    ]
    page = render(results, MACHINE)
    assert "| kill | kill -9 | 6 | 5 | 61 |" in page
    assert "| **all** |  | 9 | 8 | 76 |" in page
    assert "| point | merge | read-only |" in page
    assert "| claimed | head, hard | yes |" in page
    assert "| applied | **hard: failed** | – |" in page
    assert page.index("| claimed |") < page.index("| applied |") < page.index("| merge sent |")
    assert "| decision | head\\*, hard |" in page
    assert "| merge | merge hard | yes |" in page
    assert "| `pause/decision/SIGSTOP/replace-head` | V3: taken |" in page
    assert "2026-01-02: 2 cores, 24 GiB" in page


def test_a_page_of_nothing_says_so() -> None:
    assert "| **all** |  | 0 | 0 | 0 |" in render([], MACHINE)


def test_every_family_has_its_tests() -> None:
    paths = [path for family in FAMILIES for path in family.paths]
    assert len(paths) == len(set(paths))
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_points_of_paths() -> None:
    assert set(POINTS_OF) > AFTER_ABANDONED
    assert POINTS_OF["merge"][0] == "claimed"
    assert POINTS_OF["merge"][-1] == "after directory cleanup"
    assert "applied" not in POINTS_OF["no-op"]
    assert "applied" in POINTS_OF["relocate"]
    assert "before diff" not in POINTS_OF["read-only"]
