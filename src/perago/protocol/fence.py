"""The attempt fence: is the attempt that was polled still the current one? (F1)"""

from __future__ import annotations

from perago.errors import StaleAttemptError
from perago.protocol.values import Attempt, AttemptSnapshot, Status


def assert_current_attempt_snapshot(
    polled: Attempt | AttemptSnapshot, fresh: AttemptSnapshot
) -> None:
    """Raise :class:`StaleAttemptError` naming the first field that no longer agrees."""
    checks = (
        ("status", str(Status.IN_PROGRESS), str(fresh.status)),
        ("workflow_instance_id", polled.workflow_instance_id, fresh.workflow_instance_id),
        ("task_id", polled.task_id, fresh.task_id),
        ("retry_count", polled.retry_count, fresh.retry_count),
        # Whoever reruns a workflow from a task has the same task handed out a second time.
        (
            "started_at",
            polled.started_at or fresh.started_at,
            fresh.started_at or polled.started_at,
        ),
    )
    for field, expected, found in checks:
        if expected != found:
            raise StaleAttemptError(
                f"attempt {polled.task_id} is no longer current: "
                f"{field} is {found!r}, expected {expected!r}",
                remedy="nothing to do: nothing was published and the engine decides what runs next",
            )
