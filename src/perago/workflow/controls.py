"""What a TaskDef says about retries, timeouts and limits, as far as one machine applies it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from perago.workflow.fields import Fields


class RetryLogic(StrEnum):
    """How the wait before a retry grows."""

    FIXED = "FIXED"
    EXPONENTIAL_BACKOFF = "EXPONENTIAL_BACKOFF"
    LINEAR_BACKOFF = "LINEAR_BACKOFF"


class TimeoutAction(StrEnum):
    """What a timeout does."""

    RETRY = "RETRY"
    TIME_OUT_WF = "TIME_OUT_WF"
    ALERT_ONLY = "ALERT_ONLY"


@dataclass(frozen=True, slots=True)
class Controls:
    """Defaults are those of ``TaskControls``; 0 seconds and 0 limits mean none.

    ``responseTimeoutSeconds`` and ``pollTimeoutSeconds`` are not here: the runner sees an
    executor die and never waits for a poll.
    """

    retry_count: int = 3
    retry_logic: RetryLogic = RetryLogic.FIXED
    retry_delay_seconds: float = 60
    max_retry_delay_seconds: float = 0
    backoff_jitter_ms: int = 0
    backoff_scale_factor: int = 1
    timeout_policy: TimeoutAction = TimeoutAction.TIME_OUT_WF
    timeout_seconds: float = 0
    total_timeout_seconds: float = 0
    concurrent_exec_limit: int = 0
    rate_limit_per_frequency: int = 0
    rate_limit_frequency_in_seconds: int = 0

    @classmethod
    def from_taskdef(cls, taskdef: Mapping[str, object], source: str = "TaskDef") -> Self:
        """Read the controls of a Conductor TaskDef; keys that are absent keep their defaults."""
        fields = Fields(source, "", taskdef)
        default = cls()
        return cls(
            retry_count=fields.integer("retryCount", default.retry_count),
            retry_logic=fields.choice("retryLogic", RetryLogic, default.retry_logic),
            retry_delay_seconds=fields.number("retryDelaySeconds", default.retry_delay_seconds),
            max_retry_delay_seconds=fields.number("maxRetryDelaySeconds", 0),
            backoff_jitter_ms=fields.integer("backoffJitterMs", 0),
            backoff_scale_factor=fields.integer("backoffScaleFactor", 1),
            timeout_policy=fields.choice("timeoutPolicy", TimeoutAction, default.timeout_policy),
            timeout_seconds=fields.number("timeoutSeconds", 0),
            total_timeout_seconds=fields.number("totalTimeoutSeconds", 0),
            concurrent_exec_limit=fields.integer("concurrentExecLimit", 0),
            rate_limit_per_frequency=fields.integer("rateLimitPerFrequency", 0),
            rate_limit_frequency_in_seconds=fields.integer("rateLimitFrequencyInSeconds", 0),
        )
