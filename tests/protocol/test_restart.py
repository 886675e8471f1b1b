"""Back-off between the lives of an executor (W5)."""

from __future__ import annotations

import pytest

from perago.protocol.restart import (
    PAUSE_SECONDS,
    WINDOW_SECONDS,
    backoff_seconds,
    closed_until,
    deaths_in_a_row,
    recent_deaths,
)


def test_w5_the_waits_double_up_to_half_a_minute() -> None:
    assert [backoff_seconds(n) for n in range(1, 9)] == [1, 2, 4, 8, 16, 30, 30, 30]


@pytest.mark.parametrize("deaths", [0, -1])
def test_w5_without_a_death_nobody_waits(deaths: int) -> None:
    assert backoff_seconds(deaths) == 0


@pytest.mark.parametrize(
    ("previous", "lived", "deaths"),
    [(0, 0.1, 1), (1, 0.1, 2), (5, 59.9, 6), (5, 60.0, 1), (99, 3600.0, 1), (0, 3600.0, 1)],
)
def test_w5_a_healthy_minute_forgets_earlier_deaths(
    previous: int, lived: float, deaths: int
) -> None:
    assert deaths_in_a_row(previous, lived) == deaths


def test_w5_a_crash_loop_then_health_then_a_crash() -> None:
    waits, deaths = [], 0
    for lived in (1.0, 1.0, 1.0, 120.0, 1.0):
        deaths = deaths_in_a_row(deaths, lived)
        waits.append(backoff_seconds(deaths))
    assert waits == [1, 2, 4, 1, 2]


# --- the breaker --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("deaths", "executors", "until"),
    [
        ([], 1, 0),
        ([0, 1, 2, 3], 1, 0),
        ([0, 1, 2, 3, 4], 1, 4 + PAUSE_SECONDS),
        ([0, 1, 2, 3, 59.9], 1, 59.9 + PAUSE_SECONDS),
        ([0, 1, 2, 3, WINDOW_SECONDS], 1, 0),
        ([0, 1, 2, 3, 4, 5], 1, 5 + PAUSE_SECONDS),
        ([0, 1, 2, 3, 4], 2, 0),
        ([0, 1, 2, 3, 4, 5], 2, 5 + PAUSE_SECONDS),
        (list(range(11)), 4, 0),
        (list(range(12)), 4, 11 + PAUSE_SECONDS),
    ],
)
def test_too_many_deaths_in_a_window_stop_the_polling(
    deaths: list[float], executors: int, until: float
) -> None:
    assert closed_until(deaths, executors) == until


def test_old_deaths_are_forgotten() -> None:
    assert recent_deaths([0, 100, 200], 200) == (100, 200)
    assert closed_until(recent_deaths([0, 1, 2, 3, 4], 1000), 1) == 0
