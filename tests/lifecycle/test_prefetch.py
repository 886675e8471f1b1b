"""H may be read as early as the staging commit: F3 only wants it before the attempt fence."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from perago.attempt.fence import AttemptFence
from perago.errors import PublishFenceError, StoreUnavailableError
from perago.prefetch import Prefetch, in_background, when_needed
from perago.protocol.values import WorkspaceInput
from perago.testing import Lab
from tests.lifecycle import tasks
from tests.patience import LIMIT


def fence_of(lab: Lab, prefetch: Prefetch) -> tuple[AttemptFence, WorkspaceInput]:
    """Give the fence of an attempt that is current."""
    run = lab.run(tasks.write)
    assert run.workspace is not None
    return AttemptFence(run.attempt, lab.store, lab.broker, lab.clock, prefetch), run.workspace


def test_a_question_asked_soon_is_under_way_before_its_answer_is_wanted() -> None:
    asked = threading.Event()

    def ask() -> str:
        asked.set()
        return "yes"

    answer = in_background(ask)
    assert asked.wait(LIMIT)
    assert answer() == "yes"


def test_why_there_is_no_answer_is_raised_where_it_is_wanted() -> None:
    def ask() -> None:
        raise StoreUnavailableError("lakeFS is down", remedy="start it")

    answer = in_background(ask)
    with pytest.raises(StoreUnavailableError):
        answer()


def test_a_question_asked_when_wanted_is_not_asked_before() -> None:
    asked: list[int] = []
    answer = when_needed(lambda: asked.append(1))
    assert asked == []
    answer()
    assert asked == [1]


@pytest.mark.parametrize("prefetch", [in_background, when_needed])
def test_f3_a_branch_that_moved_since_the_first_reading_is_refused(
    lab: Lab, prefetch: Prefetch, monkeypatch: pytest.MonkeyPatch
) -> None:
    fence, workspace = fence_of(lab, prefetch)
    monkeypatch.setattr(AttemptFence, "check", lambda _: None)
    first = fence.first(workspace, "head")
    before = first()
    assert fence.head(workspace, lambda: before).commit.id == before.id
    lab.commit({"ws/other.txt": "somebody else's"})
    with pytest.raises(PublishFenceError, match="branch moved"):
        fence.head(workspace, lambda: before)


def test_k3_under_hard_the_first_reading_may_write_and_is_never_ahead(lab: Lab) -> None:
    asked: list[Callable[[], Any]] = []

    def noted(ask: Callable[[], Any]) -> Callable[[], Any]:
        asked.append(ask)
        return ask

    fence, workspace = fence_of(lab, noted)
    assert fence.first(workspace, "hard")() == lab.head
    assert asked == []
    assert fence.first(workspace, "lineage")() == lab.head
    assert len(asked) == 1
