"""Recommended publish budgets: T5, P11."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perago.protocol.advice import ENOUGH, Observed, advise, percentile
from perago.protocol.budget import Budget, refuse_budget
from perago.tasks.spec import PublishBudget

SECONDS = st.floats(0, 1e4)


def test_nothing_published_gives_no_advice() -> None:
    assert advise(Observed(0, 0.0, 0.0)) is None


@given(st.integers(1, 10_000), SECONDS, SECONDS, SECONDS, SECONDS)
def test_t5_whatever_was_observed_the_advice_can_be_declared(
    count: int, p99: float, longest: float, report: float, after: float
) -> None:
    advice = advise(Observed(count, p99, max(p99, longest), report, after))
    assert advice is not None
    assert refuse_budget(advice.budget) is None
    declared = PublishBudget(
        observed_merge_p99_seconds=advice.budget.observed_merge_p99_seconds,
        safety_margin_seconds=advice.budget.safety_margin_seconds,
        lakefs_merge_timeout_seconds=advice.budget.lakefs_merge_timeout_seconds,
        conductor_completion_timeout_seconds=advice.budget.conductor_completion_timeout_seconds,
        worker_shutdown_grace_seconds=advice.budget.worker_shutdown_grace_seconds,
        heartbeat_interval_seconds=advice.budget.heartbeat_interval_seconds,
    )
    assert declared.budget == advice.budget
    seen = p99 if count >= ENOUGH else max(p99, longest)
    assert advice.budget.observed_merge_p99_seconds >= seen - 1e-6


@pytest.mark.parametrize(
    ("observed", "p99", "margin", "timeout"),
    [
        (Observed(5000, 0.012, 3.0), 0.1, 5.0, 6.0),
        (Observed(5000, 2.0, 9.0), 2.0, 6.0, 8.0),
        (Observed(5000, 100.0, 200.0), 100.0, 60.0, 160.0),
        (Observed(ENOUGH - 1, 0.012, 0.9), 0.9, 20.0, 21.0),
        (Observed(3, 0.01, 12.0), 12.0, 36.0, 48.0),
    ],
)
def test_t5_few_publications_are_trusted_less(
    observed: Observed, p99: float, margin: float, timeout: float
) -> None:
    advice = advise(observed)
    assert advice is not None
    assert advice.certain == (observed.publications >= ENOUGH)
    budget = advice.budget
    assert budget.observed_merge_p99_seconds == pytest.approx(p99)
    assert budget.safety_margin_seconds == margin
    assert budget.lakefs_merge_timeout_seconds == timeout


def test_w6_the_grace_lets_an_attempt_finish_what_follows_its_body() -> None:
    quick = advise(Observed(500, 0.1, 0.1, report_p99=0.01, after_body_p99=2.0))
    slow = advise(Observed(500, 0.1, 0.1, report_p99=2.5, after_body_p99=45.0))
    assert quick is not None
    assert slow is not None
    assert quick.budget.worker_shutdown_grace_seconds == Budget().worker_shutdown_grace_seconds
    assert slow.budget.worker_shutdown_grace_seconds == 90.0
    assert quick.budget.conductor_completion_timeout_seconds == 10.0
    assert slow.budget.conductor_completion_timeout_seconds == 25.0


@given(st.lists(SECONDS, min_size=2, max_size=50))
def test_percentiles_are_those_of_the_textbook(values: list[float]) -> None:
    ordered = sorted(values)
    hundredths = statistics.quantiles(ordered, n=100, method="inclusive")
    for share in (50, 90, 99):
        assert percentile(ordered, share / 100) == pytest.approx(hundredths[share - 1])
    assert percentile(ordered[:1], 0.99) == ordered[0]
