"""Publish budget arithmetic (T5, P11)."""

from __future__ import annotations

import math
from dataclasses import dataclass

_WITHOUT_LIMIT = 3600.0


@dataclass(frozen=True, slots=True)
class Budget:
    """The seconds an attempt may spend on its last steps; these are the defaults without a budget.

    Every call has a timeout even when the author gave no budget (section 13).
    """

    observed_merge_p99_seconds: float = 10.0
    safety_margin_seconds: float = 20.0
    lakefs_merge_timeout_seconds: float = 30.0
    conductor_completion_timeout_seconds: float = 30.0
    worker_shutdown_grace_seconds: float = 30.0
    heartbeat_interval_seconds: float = 10.0


def refuse_budget(budget: Budget) -> str | None:
    """Return why a budget cannot hold, or None."""
    needed = budget.observed_merge_p99_seconds + budget.safety_margin_seconds
    if budget.lakefs_merge_timeout_seconds < needed:
        return (
            f"lakefs_merge_timeout_seconds is {budget.lakefs_merge_timeout_seconds:g}, "
            f"less than observed_merge_p99_seconds + safety_margin_seconds = {needed:g}"
        )
    return None


def commit_seconds(budget: Budget, response_seconds: float, left_seconds: float) -> float:
    """Return how long the staging commit may take: what is left of the attempt's time.

    Without such a limit it is the time after which the engine would give up on a worker that says
    nothing, though the lease is extended meanwhile; never less than a publication has.
    """
    least = budget.lakefs_merge_timeout_seconds
    if math.isfinite(left_seconds):
        return max(left_seconds, least)
    return max(response_seconds, least) if response_seconds else _WITHOUT_LIMIT


def response_seconds_needed(budget: Budget) -> float:
    """Return what ``responseTimeoutSeconds`` has to cover."""
    return (
        budget.lakefs_merge_timeout_seconds
        + budget.conductor_completion_timeout_seconds
        + budget.worker_shutdown_grace_seconds
        + budget.heartbeat_interval_seconds
    )


def report_seconds(budget: Budget | None, lease_seconds: float) -> float:
    """Return how long a result may be offered: as the author's budget says, never beyond the lease.

    Without a budget the lease alone bounds it; 0 means that nothing does.
    """
    limits = [lease_seconds, budget.conductor_completion_timeout_seconds if budget else 0.0]
    return min((limit for limit in limits if limit), default=0.0)


def response_warning(budget: Budget, response_seconds: float) -> str | None:
    """Warn when the lease could end while a publication is still under way."""
    needed = response_seconds_needed(budget)
    if response_seconds == 0 or response_seconds >= needed:  # 0: the engine never times out
        return None
    return (
        f"responseTimeoutSeconds is {response_seconds:g} but the publish budget needs "
        f"{needed:g}: raise timeout.response_seconds"
    )
