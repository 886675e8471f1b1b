"""Every scenario, on the decisions alone, on the embedded store and on lakeFS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from perago.protocol.kinds import FenceKind
from tests.model.labs import lab_on
from tests.scenarios.scenario import DIRECTORY, Scenario, Step, read
from tests.scenarios.worlds import Model, Played, World

SCENARIOS = {path.stem: read(path) for path in sorted(DIRECTORY.glob("*.txt"))}
CASES = [
    pytest.param(scenario, fence, id=f"{name}/{fence}")
    for name, scenario in SCENARIOS.items()
    for fence in scenario.fences
]


@pytest.fixture(params=["model", "embedded", "lakefs"])
def world(request: pytest.FixtureRequest, fence: FenceKind, tmp_path: Path) -> Iterator[World]:
    if request.param == "model":
        yield Model(fence)
        return
    with lab_on(request.param, fence, request, tmp_path) as lab:
        yield Played(lab, fence)


@pytest.mark.parametrize(("scenario", "fence"), CASES)
def test_it_goes_as_it_is_written(scenario: Scenario, fence: FenceKind, world: World) -> None:
    for step in scenario.steps:
        assert (step.name, world.play(step)) == (step.name, step.status)
    assert world.main == scenario.main, fence
    assert world.files == scenario.files


def test_there_are_some() -> None:
    assert len(SCENARIOS) >= 14


@pytest.mark.parametrize("line", ["first: does something", "first: a new step writes one"])
def test_a_line_that_is_not_understood_is_an_error(tmp_path: Path, line: str) -> None:
    file = tmp_path / "odd.txt"
    file.write_text(f"Title\n\n{line}\n\nmain: A\nfiles: -\n")
    with pytest.raises(ValueError, match="not understood"):
        read(file)


def test_a_scenario_can_fail(tmp_path: Path) -> None:
    """The worlds tell a wrong history from a right one."""
    wrong = SCENARIOS["abandoned-publication-is-superseded"]
    world = Model("head")
    for step in wrong.steps:
        world.play(step)
    assert world.main != wrong.main
    assert Step("x", "y") != Step("x", "z")
