"""How long a poller waits: adaptive, bounded, never a busy loop (issue 5, build 2)."""

from __future__ import annotations

from itertools import pairwise, product

import pytest

from perago.brokers.conductor.backoff import LEAST_SECONDS, Backoff

INTERVALS = (0.0, 0.01, 0.1, 0.5, 2.0, 7.0)
MAXIMA = (0.0, 0.1, 2.0, 60.0)


def waits(backoff: Backoff, steps: int) -> list[float]:
    found = []
    for _ in range(steps):
        backoff = backoff.after_nothing()
        found.append(backoff.wait_seconds)
    return found


def test_it_doubles_up_to_the_most() -> None:
    assert waits(Backoff(0.1, 2.0), 7) == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0])


@pytest.mark.parametrize(("interval", "most"), [*product(INTERVALS, MAXIMA)])
def test_every_pace_starts_at_the_interval_never_shrinks_and_never_passes_the_most(
    interval: float, most: float
) -> None:
    found = waits(Backoff(interval, most), 2000)
    first = max(interval, LEAST_SECONDS)
    assert found[0] == first
    assert all(one <= other for one, other in pairwise(found))
    assert max(found) == max(first, most)
    assert all(other <= 2 * one for one, other in pairwise(found))


@pytest.mark.parametrize("steps", [*product((True, False), repeat=8)])
def test_whatever_happened_before_work_the_next_poll_follows_at_once(
    steps: tuple[bool, ...],
) -> None:
    """All 256 histories of eight polls: the wait depends only on the misses since the last work."""
    backoff = Backoff(0.1, 2.0)
    misses = 0
    for worked in steps:
        backoff = backoff.after_work() if worked else backoff.after_nothing()
        misses = 0 if worked else misses + 1
        assert backoff.wait_seconds == (waits(Backoff(0.1, 2.0), misses)[-1] if misses else 0.0)


def test_polls_of_an_idle_hour_are_as_few_as_configured() -> None:
    elapsed, polls, backoff = 0.0, 0, Backoff(0.1, 2.0)
    while elapsed < 3600:
        backoff = backoff.after_nothing()
        elapsed += backoff.wait_seconds
        polls += 1
    assert polls <= 3600 / 2.0 + 6
