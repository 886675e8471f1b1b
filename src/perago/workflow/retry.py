"""Whether and when a failed attempt is tried again: Conductor's retry policies."""

from __future__ import annotations

import math
from dataclasses import dataclass

from perago.protocol.values import Status
from perago.workflow.controls import Controls, RetryLogic, TimeoutAction


@dataclass(frozen=True, slots=True)
class Retry:
    """Another attempt follows after the delay."""

    delay_seconds: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """No further attempt; ``why`` ends the sentence about it."""

    why: str


def after_failure(
    controls: Controls,
    status: Status,
    failures: int,
    spent_seconds: float,
    jitter: float,
    longest_delay: float = math.inf,
) -> Retry | GiveUp:
    """Judge the n-th failure in a row (n starts at 1).

    ``spent_seconds`` have passed since the first attempt was scheduled; ``jitter`` is a number
    from 0 to 1 that the caller draws. Nobody at a terminal waits longer than ``longest_delay``.
    """
    if status is Status.FAILED_WITH_TERMINAL_ERROR:
        return GiveUp("the error is terminal")
    if status is Status.CANCELED:
        return GiveUp("it was terminated")
    if status is Status.TIMED_OUT and controls.timeout_policy is TimeoutAction.TIME_OUT_WF:
        return GiveUp("timeoutPolicy is TIME_OUT_WF")
    if failures > controls.retry_count:
        return GiveUp(f"retryCount {controls.retry_count} is used up")
    delay = min(delay_seconds(controls, failures, jitter), longest_delay)
    if bounded(controls) and spent_seconds + delay >= controls.total_timeout_seconds:
        return GiveUp(f"totalTimeoutSeconds {controls.total_timeout_seconds:g} is used up")
    return Retry(delay)


def bounded(controls: Controls) -> bool:
    """Return whether all attempts together have a limit; ALERT_ONLY only says so."""
    return (
        controls.total_timeout_seconds > 0
        and controls.timeout_policy is not TimeoutAction.ALERT_ONLY
    )


def delay_seconds(controls: Controls, failures: int, jitter: float) -> float:
    """Wait this long after the n-th failure; jitter comes on top of the cap."""
    delay = float(controls.retry_delay_seconds)
    match controls.retry_logic:
        case RetryLogic.EXPONENTIAL_BACKOFF:
            delay *= 2.0 ** (failures - 1)
        case RetryLogic.LINEAR_BACKOFF:
            delay *= controls.backoff_scale_factor * failures
        case RetryLogic.FIXED:
            pass
    if controls.max_retry_delay_seconds > 0:
        delay = min(delay, float(controls.max_retry_delay_seconds))
    return delay + jitter * controls.backoff_jitter_ms / 1000
