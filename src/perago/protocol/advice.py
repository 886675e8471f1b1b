"""What a publish budget should be, given what was observed (T5, P11)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from perago.protocol.budget import Budget

ENOUGH = 100
"""From so many publications on, the 99th percentile says something; before, the longest does."""
_SHORTEST_MARGIN = 5.0
_LONGEST_MARGIN = 60.0
_SHORTEST_COMPLETION = 10.0
_LONGEST = 600.0
_USUAL = Budget()


@dataclass(frozen=True, slots=True)
class Observed:
    """Seconds of one task: its publish phases, its reports, and all that follows its body."""

    publications: int
    publish_p99: float
    publish_longest: float
    report_p99: float = 0.0
    after_body_p99: float = 0.0


@dataclass(frozen=True, slots=True)
class Advice:
    """A budget to declare; ``certain`` when enough publications stand behind it."""

    budget: Budget
    certain: bool


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the value that so much of a sorted sequence lies below, between two if need be."""
    at = share * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def advise(observed: Observed) -> Advice | None:
    """Recommend a budget; None when nothing was published yet.

    The publish phase is what is observed: the merge call and the two reads around it, so it is
    never less than the merge. The margin is also how long a lost answer is looked for (P11), and
    a merge was seen to land seconds after its caller gave up: it does not get small.
    """
    if not observed.publications:
        return None
    certain = observed.publications >= ENOUGH
    usual = observed.publish_p99 if certain else observed.publish_longest
    p99 = _up(usual, 0.1)
    margin = min(max(_SHORTEST_MARGIN, math.ceil(3 * p99)), _LONGEST_MARGIN)
    if not certain:
        margin = max(margin, _USUAL.safety_margin_seconds)
    completion = max(_SHORTEST_COMPLETION, math.ceil(10 * observed.report_p99))
    grace = max(_USUAL.worker_shutdown_grace_seconds, math.ceil(2 * observed.after_body_p99))
    return Advice(
        Budget(
            observed_merge_p99_seconds=p99,
            safety_margin_seconds=margin,
            lakefs_merge_timeout_seconds=float(math.ceil(p99 + margin)),
            conductor_completion_timeout_seconds=float(min(completion, _LONGEST)),
            worker_shutdown_grace_seconds=float(min(grace, _LONGEST)),
            heartbeat_interval_seconds=_USUAL.heartbeat_interval_seconds,
        ),
        certain,
    )


def _up(value: float, step: float) -> float:
    """Round up to a step, so that a budget does not look more exact than it is."""
    return round(math.ceil(round(value / step, 6)) * step, 6)
