from __future__ import annotations

import pytest

from perago.brokers.local.limits import may_start_at
from perago.protocol.values import Status
from perago.workflow.controls import Controls, RetryLogic, TimeoutAction
from perago.workflow.records import TaskRecord
from perago.workflow.retry import GiveUp, Retry, after_failure, delay_seconds
from perago.workflow.tasks import TaskKind


@pytest.mark.parametrize(
    ("logic", "delays"),
    [
        (RetryLogic.FIXED, [10, 10, 10, 10, 10]),
        (RetryLogic.EXPONENTIAL_BACKOFF, [10, 20, 40, 80, 160]),
        (RetryLogic.LINEAR_BACKOFF, [10, 20, 30, 40, 50]),
    ],
)
def test_delays(logic: RetryLogic, delays: list[float]) -> None:
    controls = Controls(retry_logic=logic, retry_delay_seconds=10)
    assert [delay_seconds(controls, n, 0) for n in range(1, 6)] == delays
    capped = Controls(retry_logic=logic, retry_delay_seconds=10, max_retry_delay_seconds=35)
    assert [delay_seconds(capped, n, 0) for n in range(1, 6)] == [min(d, 35) for d in delays]


def test_linear_backoff_is_scaled_and_jitter_comes_on_top() -> None:
    controls = Controls(
        retry_logic=RetryLogic.LINEAR_BACKOFF,
        retry_delay_seconds=10,
        backoff_scale_factor=3,
        max_retry_delay_seconds=50,
        backoff_jitter_ms=500,
    )
    assert [delay_seconds(controls, n, 0.5) for n in (1, 2)] == [30.25, 50.25]


@pytest.mark.parametrize("policy", TimeoutAction)
@pytest.mark.parametrize("failures", range(1, 6))
@pytest.mark.parametrize("limit", range(4))
def test_who_is_tried_again(limit: int, failures: int, policy: TimeoutAction) -> None:
    controls = Controls(retry_count=limit, timeout_policy=policy, retry_delay_seconds=1)

    def again(status: Status) -> bool:
        return isinstance(after_failure(controls, status, failures, 0, 0), Retry)

    assert again(Status.FAILED) == (failures <= limit)
    assert not again(Status.FAILED_WITH_TERMINAL_ERROR)
    assert again(Status.TIMED_OUT) == (
        failures <= limit and policy is not TimeoutAction.TIME_OUT_WF
    )


@pytest.mark.parametrize(
    ("policy", "spent", "again"),
    [
        (TimeoutAction.RETRY, 89, True),
        (TimeoutAction.RETRY, 90, False),  # the retry would begin when the total is used up
        (TimeoutAction.TIME_OUT_WF, 90, False),
        (TimeoutAction.ALERT_ONLY, 90, True),
    ],
)
def test_all_attempts_together_have_a_limit(
    policy: TimeoutAction, spent: float, again: bool
) -> None:
    controls = Controls(retry_delay_seconds=10, total_timeout_seconds=100, timeout_policy=policy)
    verdict = after_failure(controls, Status.FAILED, 1, spent, 0)
    assert verdict == (Retry(10) if again else GiveUp("totalTimeoutSeconds 100 is used up"))


def record(seq: int, status: Status, started_at: float | None, name: str = "t") -> TaskRecord:
    return TaskRecord(
        run_id="run",
        task_id=str(seq),
        seq=seq,
        reference_name=f"ref-{seq}",
        task_def_name=name,
        kind=TaskKind.SIMPLE,
        retry_count=0,
        generation=0,
        status=status,
        input={},
        start_at=50,
        scheduled_at=0,
        started_at=started_at,
    )


@pytest.mark.parametrize(
    ("controls", "at"),
    [
        (Controls(), 50),
        (Controls(concurrent_exec_limit=3), 50),
        (Controls(concurrent_exec_limit=2), float("inf")),
        (Controls(rate_limit_per_frequency=4, rate_limit_frequency_in_seconds=60), 50),
        (Controls(rate_limit_per_frequency=3, rate_limit_frequency_in_seconds=60), 70),
        (Controls(rate_limit_per_frequency=1, rate_limit_frequency_in_seconds=60), 90),
        (Controls(rate_limit_per_frequency=1, rate_limit_frequency_in_seconds=5), 50),
    ],
)
def test_limits(controls: Controls, at: float) -> None:
    waiting = record(5, Status.SCHEDULED, None)
    tasks = [
        record(1, Status.COMPLETED, 10),
        record(2, Status.IN_PROGRESS, 20),
        record(3, Status.IN_PROGRESS, 30),
        record(4, Status.IN_PROGRESS, 40, name="another"),
        waiting,
    ]
    assert may_start_at(waiting, controls, tasks) == at


def test_nobody_waits_longer_than_the_longest_delay() -> None:
    controls = Controls(retry_count=2, retry_delay_seconds=60)
    for failures, expected in ((1, Retry(1.0)), (2, Retry(1.0))):
        assert after_failure(controls, Status.FAILED, failures, 0, 0.0, 1.0) == expected
    assert isinstance(after_failure(controls, Status.FAILED, 3, 0, 0.0, 1.0), GiveUp)
    quick = Controls(retry_count=1, retry_delay_seconds=0.2)
    assert after_failure(quick, Status.FAILED, 1, 0, 0.0, 1.0) == Retry(0.2)
