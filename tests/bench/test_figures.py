"""What is made of measurements: the page, the pictures, and the word that a ratio has fallen."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from bench import page, picture
from bench.comparison import Comparison, Ratio, Timing, report
from bench.regression import fallen


def ratio(value: float, kind: str = "at least", target: float | None = 3) -> dict[str, Any]:
    return {"value": value, "kind": kind, "target": target, "holds": value >= (target or 0)}


PAGE = Path(__file__).parents[2] / "docs" / "reference" / "benchmarks.md"
COMPARISON = {
    "name": "attempt",
    "what": "a few files",
    "load": [0.5, 0.4, 0.3],
    "took": 90,
    "contenders": {
        "perago": {"median": 0.02, "spread": 0.1, "seconds": [0.019, 0.02, 0.021]},
        "perago 0.6.1": {"median": 2.0, "spread": 0.2, "seconds": [1.9, 2.0, 2.3]},
    },
    "facts": {"requests": 30},
    "ratios": {},
}
DOCUMENT = {
    "machine": {"python": "3.11.7", "system": "Linux", "processor": "x86_64", "cores": 2},
    "comparisons": [COMPARISON],
    "ratios": {"a / b": ratio(100.0), "c / d": ratio(1.0), "e / f": ratio(2.0, target=None)},
}


def test_the_page_says_what_holds_and_what_does_not() -> None:
    text = page.render(DOCUMENT)
    assert "| a / b | 100.0 | at least 3 | holds |" in text
    assert "| c / d | 1.0 | at least 3 | **missed** |" in text
    assert "| e / f | 2.0 | | |" in text
    assert "![attempt](benchmarks/attempt.png)" in text
    assert "| perago 0.6.1 | 3 | 2,000.0 ms | ±10% |" in text
    assert "load of the machine 0.5" in text
    assert "2 cores), in 2 minutes" in text


def test_one_run_is_no_median_and_has_no_spread() -> None:
    once = {"median": 2.0, "spread": 0.0, "seconds": [2.0]}
    found = {**COMPARISON, "contenders": {"perago 0.6.1": once}}
    text = page.render({**DOCUMENT, "comparisons": [found]})
    assert "| contender | runs | time | spread |" in text
    assert "| perago 0.6.1 | 1 | 2,000.0 ms |  |" in text


def test_the_page_that_is_published_says_how_often_each_contender_ran() -> None:
    """As many runs as the comparison asks for; a single one is not called a median."""
    text = PAGE.read_text(encoding="utf-8")
    assert text.startswith(page.HEAD)
    tables = re.findall(r"\| contender \|.*\n\| ---.*\n((?:\|.*\n)+)", text)
    rows = [row.split("|")[1:-1] for table in tables for row in table.splitlines()]
    assert len(tables) == text.count("![")
    assert {len(row) for row in rows} == {4}
    for contender, runs, _, spread in rows:
        assert int(runs) >= 1, contender
        assert ("±" in spread) == (int(runs) > 1), contender


def test_a_picture_is_drawn_and_stays_the_same(tmp_path: Path) -> None:
    picture.draw(COMPARISON, tmp_path / "one.png")
    picture.draw(COMPARISON, tmp_path / "two.png")
    drawn = (tmp_path / "one.png").read_bytes()
    assert drawn.startswith(b"\x89PNG")
    assert drawn == (tmp_path / "two.png").read_bytes()


@pytest.mark.parametrize(
    ("of_b", "of_c", "holds"),
    [(1.0, 9.0, True), (9.0, 1.0, True), (9.0, 9.0, False)],
    ids=["one", "the other", "none"],
)
def test_of_two_alternatives_one_is_enough(of_b: float, of_c: float, *, holds: bool) -> None:
    ratios = [
        Ratio("a / b", "a", "b", at_least=1, or_else="a / c"),
        Ratio("a / c", "a", "c", at_least=1, or_else="a / b"),
    ]
    timings = {"a": Timing((1.0,)), "b": Timing((of_b,)), "c": Timing((of_c,))}
    comparison = Comparison("x", "x", dict.fromkeys(timings, lambda: None), ratios)
    found = report(comparison, timings)["ratios"]
    assert [found[name]["holds"] for name in ("a / b", "a / c")] == [holds, holds]
    rows = page.render({**DOCUMENT, "ratios": found}).splitlines()
    assert holds == any("missed; enough is: a / " in row for row in rows)


@pytest.mark.parametrize(
    ("kind", "now", "worse"),
    [
        ("at least", 7.1, False),
        ("at least", 6.9, True),
        ("at least", 40.0, False),
        ("at most", 14.0, False),
        ("at most", 14.5, True),
        ("at most", 2.0, False),
    ],
)
def test_a_ratio_that_is_30_percent_worse_has_fallen(kind: str, now: float, *, worse: bool) -> None:
    found = list(fallen({"r": ratio(10.0, kind)}, {"r": ratio(now, kind)}))
    assert bool(found) is worse


@pytest.mark.parametrize(("best", "fell"), [(9.0, False), (5.0, True)])
def test_the_best_times_tell_whether_it_has_fallen(best: float, *, fell: bool) -> None:
    recorded = {"r": ratio(10.0) | {"best": 10.0}}
    assert bool(list(fallen(recorded, {"r": ratio(1.0) | {"best": best}}))) is fell


@pytest.mark.parametrize(("now", "fell"), [(40.0, False), (60.0, True)])
def test_what_was_counted_is_held_to_its_target(now: float, *, fell: bool) -> None:
    allowed = {"kind": "at most", "target": 50.0, "counted": True}
    recorded = {"ms": {"value": 6.0, "holds": True, **allowed}}
    measured = {"ms": {"value": now, "holds": now <= 50, **allowed}}
    assert bool(list(fallen(recorded, measured))) is fell


def test_points_of_a_curve_are_drawn_as_lines(tmp_path: Path) -> None:
    curve = {"axis": "files", "at": {"perago": ["here", 1.0], "perago 0.6.1": ["there", 9.0]}}
    picture.draw({**COMPARISON, "curve": curve}, tmp_path / "lines.png")
    picture.draw(COMPARISON, tmp_path / "bars.png")
    assert (tmp_path / "lines.png").read_bytes() != (tmp_path / "bars.png").read_bytes()


def test_what_was_not_measured_has_not_fallen() -> None:
    assert list(fallen({"r": ratio(10.0)}, {})) == []
