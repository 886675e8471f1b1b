"""The page of the fault report, from results that are made up."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests import lakefs_kv
from tests.faults import rig, test_kills, test_pauses
from tests.faults.families import FAMILIES, NO_FAULTS, is_case
from tests.faults.page import Case, Machine, Result, render
from tests.faults.paths import AFTER_ABANDONED, EARLY, POINTS_OF
from tests.faults.report import cases_of, joined

MACHINE = Machine(2, 24, "Linux x86_64", "3.11.7", "2026-01-02")
ROOT = Path(__file__).parents[2]
XML = """<testsuites><testsuite name="pytest">
<testcase classname="tests.faults.test_kills" name="test_kill[kill/claimed/SIGKILL/merge-head]"
 time="1.5"><properties><property name="faults" value="1"/>
<property name="servers" value="Conductor lakeFS"/></properties></testcase>
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
    assert (killed.faults, killed.servers, killed.real) == (1, "Conductor lakeFS", 2)
    assert (paused.faults, paused.real) == (0, 0)
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
                replace(case("kill/merge sent/SIGKILL/merge-head"), servers="Conductor lakeFS"),
                replace(case("kill/claimed/SIGKILL/merge-head"), servers="Conductor lakeFS"),
                replace(case("kill/claimed/SIGKILL/merge-hard"), servers="lakeFS"),
                case("kill/after directory cleanup/SIGKILL/read-only"),
                case("kill/applied/SIGKILL/merge-hard", "failed"),
                case("kill/before directory cleanup/SIGKILL/merge-hard"),
            ],
            "abc",
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
    page = render(results, MACHINE, ["kill", "pause", "network", "spark"])
    assert "| kill | kill -9 | 2 | 1 | 3 | 5 of 6 | 61 | abc |" in page
    assert "| pause | SIGSTOP | 0 | 0 | 2 | all | 10 | unknown |" in page
    assert "| spark | not run |" in page
    assert "| **all** |  | 2 | 1 | 6 | 8 of 9 | 76 |  |" in page
    assert "| point | merge | read-only |" in page
    assert "| claimed | head, hard | = |" in page
    assert "| before directory cleanup | hard | not tested |" in page
    assert "| applied | **hard: failed** | – |" in page
    assert page.index("| claimed |") < page.index("| applied |") < page.index("| merge sent |")
    assert "| decision | head\\*, hard |" in page
    assert "| merge | merge hard | yes |" in page
    assert "| `pause/decision/SIGSTOP/replace-head` | V3: taken |" in page
    assert "2026-01-02: 2 cores, 24 GiB" in page


def test_a_page_of_nothing_says_so() -> None:
    assert "| **all** |  | 0 | 0 | 0 | all | 0 |  |" in render([], MACHINE)


def test_every_family_has_its_tests() -> None:
    paths = [path for family in FAMILIES for path in (*family.paths, *family.inputs)]
    assert [path for path in paths if not (ROOT / path).exists()] == []
    varied = (lakefs_kv.VARIABLE, rig.NODE)
    runs = [
        (path, *(family.settings.get(each, "") for each in varied))
        for family in FAMILIES
        for path in family.paths
    ]
    assert len(runs) == len(set(runs))


def test_what_is_said_to_be_no_fault_is_a_test_of_a_family() -> None:
    given = [ROOT / path for family in FAMILIES for path in family.inputs]
    files = [file for path in given for file in ([path] if path.is_file() else path.glob("*.py"))]
    there = {
        name
        for file in files
        for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)
    }
    assert there >= NO_FAULTS


def test_a_case_has_a_fault_injected_or_given() -> None:
    assert is_case("kill", "tests/faults/test_kills.py::test_kill", 1)
    assert not is_case("kill", "tests/faults/test_kills.py::test_kill", 0)
    assert is_case("files", "tests/workspace/test_scan.py::test_s3_a_device_is_refused", 0)
    assert not is_case("files", f"tests/workspace/test_scan.py::{min(NO_FAULTS)}", 0)
    assert not is_case("network", "tests/lakefs/test_bounded.py::test_the_events_say", 0)


def test_cases_that_cannot_differ_are_run_once() -> None:
    kills = [(case.point, case.path, case.fence) for case in test_kills.CASES]
    pauses = [(case.point, case.path, case.fence, case.apart) for case in test_pauses.CASES]
    for cases in (kills, pauses):
        early = [case for case in cases if case[0] in EARLY]
        assert len(cases) == len(set(cases))
        assert len(early) == len({case[0] for case in early})
    assert {case[0] for case in kills} >= EARLY


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md", "SECURITY.md"])
def test_nobody_claims_more_cases_than_the_page_counts(name: str) -> None:
    """A number of cases stands on the page only, which is made by what was run."""
    claimed = re.findall(
        r"[^\n]*(?:thousand|hundred|\d[\d,]{2,}|[百千])[^\n]*", (ROOT / name).read_text()
    )
    assert [line for line in claimed if re.search(r"case|用例|fault", line)] == []


def test_points_of_paths() -> None:
    assert set(POINTS_OF) > AFTER_ABANDONED
    assert POINTS_OF["merge"][0] == "claimed"
    assert POINTS_OF["merge"][-1] == "after directory cleanup"
    assert "applied" not in POINTS_OF["no-op"]
    assert "applied" in POINTS_OF["relocate"]
    assert "before diff" not in POINTS_OF["read-only"]
