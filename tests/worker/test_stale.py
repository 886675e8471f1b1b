"""An attempt that is lost on the way, through the real engine, at every point (F1 to F3, R2)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from perago.protocol.points import POINTS
from tests import injection
from tests.worker.stage import Stage, eventually

FENCED = POINTS[: POINTS.index("before second attempt fence") + 1]
PUBLISHED = POINTS[POINTS.index("before publish") : POINTS.index("before report") + 1]


def lose(stage: Stage, point: str) -> tuple[str, dict[str, str]]:
    """Have an attempt wait at a point, end its workflow there, and let it go on."""
    workspace = stage.workspace()
    path = str(stage.directory / point.replace(" ", "-"))
    workflow = stage.run("write", workspace=workspace, pause=point, path=path)
    eventually(Path(f"{path}.paused").exists, point)
    end = partial(stage.client.terminate, workflow, "lost on purpose")
    injection.inject("workflow terminated", end)
    Path(f"{path}.go").touch()
    eventually(lambda: _ended(stage, workflow), f"end of the attempt lost at {point}")
    assert stage.tasks(workflow) == [("CANCELED", 0)], point
    return workflow, workspace


def _ended(stage: Stage, workflow: str) -> list[dict[str, Any]]:
    ends = stage.logged("attempt ended")
    return [line for line in ends if line.get("workflow_instance_id") == workflow]


@pytest.mark.parametrize("part", [0, 1])
def test_f2_an_attempt_lost_before_the_second_fence_publishes_nothing(
    stage: Stage, part: int
) -> None:
    stage.register()
    worker = stage.start("-j", "1")
    for point in FENCED[part::2]:
        _, workspace = lose(stage, point)
        assert stage.head(workspace) == workspace["ref"], point
        assert stage.history(workspace) == [], point
        eventually(lambda: not stage.staging(workspace), point)  # noqa: B023 - called at once
    eventually(lambda: not stage.attempt_dirs())
    assert worker.stop() == 0


def test_r2_an_attempt_lost_after_the_second_fence_is_an_abandoned_publication(
    stage: Stage,
) -> None:
    """The window that fence ``head`` leaves open: published, never accepted, and logged as such."""
    stage.register()
    worker = stage.start("-j", "1")
    for point in PUBLISHED:
        workflow, workspace = lose(stage, point)
        assert len(stage.history(workspace)) == 1, point
        lost = [line for line in stage.logged("lost completion") if workflow in str(line)]
        assert lost, point
    assert worker.stop() == 0
    assert stage.attempt_dirs() == []


def test_r2_a_lost_result_that_published_nothing_is_logged_too(stage: Stage) -> None:
    """It is read back when the worker has a moment; it has one at once here."""
    stage.register()
    worker = stage.start("-j", "1")
    path = str(stage.directory / "free")
    workflow = stage.run(pause="after body", path=path)
    eventually(Path(f"{path}.paused").exists, "the end of the body")
    end = partial(stage.client.terminate, workflow, "lost on purpose")
    injection.inject("workflow terminated", end)
    Path(f"{path}.go").touch()
    lost = eventually(lambda: stage.logged("lost completion"), "the news")
    assert [line["workflow_instance_id"] for line in lost] == [workflow]
    assert worker.stop() == 0
