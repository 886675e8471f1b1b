"""When a scheduled attempt may be claimed: concurrency and rate limits of its definition."""

from __future__ import annotations

import math
from collections.abc import Iterable

from perago.protocol.values import Status
from perago.workflow.controls import Controls
from perago.workflow.records import TaskRecord


def may_start_at(task: TaskRecord, controls: Controls, tasks: Iterable[TaskRecord]) -> float:
    """Return the earliest moment; infinity when another attempt has to end first.

    Conductor counts over all workflows; here the attempts of one run are all there is.
    """
    same = [
        other
        for other in tasks
        if (other.kind, other.task_def_name) == (task.kind, task.task_def_name)
    ]
    running = sum(1 for other in same if other.status is Status.IN_PROGRESS)
    if 0 < controls.concurrent_exec_limit <= running:
        return math.inf
    allowed, window = controls.rate_limit_per_frequency, controls.rate_limit_frequency_in_seconds
    starts = sorted(other.started_at for other in same if other.started_at is not None)
    if allowed <= 0 or window <= 0 or len(starts) < allowed:
        return task.start_at
    return max(task.start_at, starts[-allowed] + window)
