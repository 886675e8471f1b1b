"""Fence ``hard`` where it is a compare-and-set: on the embedded store (K3)."""

from __future__ import annotations

import pytest

from perago.protocol.values import Status
from perago.testing import POINTS, FailAt, Lab, MoveHeadAt
from tests.lifecycle import tasks


@pytest.mark.parametrize("point", POINTS)
def test_v1_v3_killed_anywhere_the_retry_completes(lab: Lab, point: str) -> None:
    retried = lab.run(tasks.write_hard, {"text": "first"}, faults=[FailAt(point)]).retry()
    assert retried.completed, retried.reason
    assert retried.ref == lab.head.id
    assert len(retried.history) == 2
    assert retried.files["ws/out.txt"] == b"first"


def test_p2_a_retry_replaces_an_abandoned_publication(lab: Lab) -> None:
    abandoned = lab.run(tasks.write_hard, faults=[FailAt("after publish")])
    old = lab.head
    assert abandoned.retry().completed
    assert lab.head.parents == old.parents
    assert lab.head.id != old.id


def test_k3_a_twin_execution_never_replaces_its_brother_under_hard(lab: Lab) -> None:
    first = lab.run(tasks.write_hard, faults=[FailAt("after publish")])
    twin = lab.again(first)
    assert "twin of this same attempt" in twin.reason
    assert lab.head.metadata["perago.execution_id"] == first.execution_id


def test_k3_another_step_is_never_replaced_under_hard(lab: Lab) -> None:
    run = lab.run(tasks.write_hard, faults=[MoveHeadAt("after stage")])
    assert run.status is Status.FAILED
    assert "was not published by step" in run.reason
    assert "foreign.txt" in run.files


def test_the_result_says_which_fence_held(lab: Lab) -> None:
    run = lab.run(tasks.write)
    assert run.outcome
    assert run.outcome.fence == "hard"  # the embedded store always compares and sets
