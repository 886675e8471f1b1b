"""Publish budget arithmetic: T5, section 13."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from perago.protocol.budget import (
    Budget,
    refuse_budget,
    report_seconds,
    response_seconds_needed,
    response_warning,
)

BUDGET = Budget(2.0, 3.0, 5.0, 7.0, 11.0, 13.0)


@pytest.mark.parametrize(
    ("timeout", "accepted"),
    [(5.0, True), (5.001, True), (600.0, True), (4.999, False), (1.0, False)],
)
def test_t5_the_merge_timeout_covers_what_was_observed_and_the_margin(
    timeout: float, accepted: bool
) -> None:
    problem = refuse_budget(replace(BUDGET, lakefs_merge_timeout_seconds=timeout))
    assert (problem is None) is accepted
    if problem:
        assert f"{timeout:g}" in problem
        assert "= 5" in problem


def test_t5_the_lease_covers_merge_completion_grace_and_heartbeat() -> None:
    assert response_seconds_needed(BUDGET) == 5 + 7 + 11 + 13


@pytest.mark.parametrize(
    ("response", "warned"), [(36.0, False), (37.0, False), (35.0, True), (1.0, True), (0.0, False)]
)
def test_t5_a_lease_that_is_too_short_gets_a_warning(response: float, warned: bool) -> None:
    """Zero seconds mean that Conductor never times the answer out."""
    warning = response_warning(BUDGET, response)
    assert (warning is not None) is warned
    if warning:
        assert "responseTimeoutSeconds is" in warning
        assert "needs 36" in warning


def test_section_13_every_call_is_bounded_without_a_budget() -> None:
    budget = Budget()
    assert refuse_budget(budget) is None
    assert all(0 < getattr(budget, field.name) < 600 for field in fields(budget))
    assert response_warning(budget, 600) is None, "the default lease holds the default budget"


@pytest.mark.parametrize(
    ("budget", "lease", "seconds"),
    [
        (None, 600.0, 600.0),
        (None, 0.0, 0.0),
        (Budget(conductor_completion_timeout_seconds=10), 600.0, 10.0),
        (Budget(conductor_completion_timeout_seconds=10), 3.0, 3.0),
        (Budget(conductor_completion_timeout_seconds=10), 0.0, 10.0),
    ],
)
def test_t5_a_budget_bounds_the_report_and_so_does_the_lease(
    budget: Budget | None, lease: float, seconds: float
) -> None:
    assert report_seconds(budget, lease) == seconds
