"""The attempt fence: F1, field by field and status by status."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perago.errors import StaleAttemptError
from perago.protocol.fence import assert_current_attempt_snapshot
from perago.protocol.values import AttemptSnapshot, Status
from tests.protocol.identities import ME

STARTED = 1_700_000_000_000
FRESH = AttemptSnapshot(ME.workflow_instance_id, ME.task_id, ME.retry_count, "IN_PROGRESS")


def test_f1_the_same_attempt_in_progress_is_current() -> None:
    assert_current_attempt_snapshot(ME, FRESH)
    assert_current_attempt_snapshot(FRESH, FRESH)
    assert_current_attempt_snapshot(ME, replace(FRESH, status=Status.IN_PROGRESS))


@pytest.mark.parametrize(
    "status",
    [
        *(status for status in Status if status is not Status.IN_PROGRESS),
        "",
        "in_progress",
        "IN_PROGRESS ",
        "SOMETHING_NEW",
    ],
)
def test_f1_g2_every_other_status_is_stale(status: str) -> None:
    with pytest.raises(StaleAttemptError, match=r"status is .* expected 'IN_PROGRESS'") as caught:
        assert_current_attempt_snapshot(ME, replace(FRESH, status=status))
    assert repr(str(status)) in str(caught.value)


@pytest.mark.parametrize(
    ("fresh", "field"),
    [
        (replace(FRESH, workflow_instance_id="workflow-2"), "workflow_instance_id"),
        (replace(FRESH, task_id="task-3"), "task_id"),
        (replace(FRESH, retry_count=2), "retry_count"),
        (replace(FRESH, retry_count=0), "retry_count"),
        (replace(FRESH, started_at=STARTED + 1), "started_at"),
    ],
    ids=["workflow", "task", "a later retry", "an earlier retry", "handed out again"],
)
def test_f1_every_field_of_the_identity_counts_and_is_named(
    fresh: AttemptSnapshot, field: str
) -> None:
    with pytest.raises(StaleAttemptError, match=f"{field} is"):
        assert_current_attempt_snapshot(replace(ME, started_at=STARTED), fresh)


def test_f1_an_engine_that_does_not_tell_the_start_is_believed_without() -> None:
    assert_current_attempt_snapshot(replace(ME, started_at=STARTED), FRESH)
    assert_current_attempt_snapshot(ME, replace(FRESH, started_at=STARTED))


def test_f1_a_stale_attempt_is_failed_not_terminal_and_names_itself() -> None:
    with pytest.raises(StaleAttemptError) as caught:
        assert_current_attempt_snapshot(ME, replace(FRESH, status="TIMED_OUT"))
    assert not caught.value.terminal
    assert ME.task_id in str(caught.value)
    assert caught.value.remedy
