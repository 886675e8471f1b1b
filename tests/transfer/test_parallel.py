"""Bounded threads: results in order, the first failure stops the rest."""

from __future__ import annotations

import threading
import time

import pytest

from perago.ports import Advance
from perago.transfer import parallel

MUCH = 1 << 40


def test_small_work_stays_in_one_thread_and_big_work_is_bounded() -> None:
    assert parallel.local_threads(2000, 2000 * 4096) == 1
    assert parallel.local_threads(3, MUCH) == min(3, parallel.local_threads(10**6, MUCH))
    assert parallel.local_threads(10**6, MUCH) <= 8
    assert parallel.local_threads(0, 0) == 1


def test_results_come_in_the_order_of_the_items_and_progress_by_one_thread_at_a_time() -> None:
    inside = threading.Semaphore(1)
    counted: list[int] = []

    def count(amount: int) -> None:
        assert inside.acquire(blocking=False)
        counted.append(amount)
        inside.release()

    def square(number: int, advance: Advance) -> int:
        advance(number)
        return number * number

    numbers = list(range(1, 500))
    assert parallel.each(numbers, square, count, threads=8) == [n * n for n in numbers]
    assert sorted(counted) == numbers


@pytest.mark.parametrize("threads", [1, 8])
def test_the_first_failure_stops_long_work_in_the_middle(threads: int) -> None:
    finished: list[int] = []

    def work(number: int, advance: Advance) -> None:
        if number == 0:
            raise ZeroDivisionError
        for _ in range(100_000):
            time.sleep(0.005)  # the work
            advance(1)
        finished.append(number)

    with pytest.raises(ZeroDivisionError):
        parallel.each(range(100), work, lambda _: None, threads=threads)
    assert not finished


def test_the_pace_grows_by_one_and_falls_by_half() -> None:
    limit = parallel.ConcurrencyLimit(most=8, first=2)
    for expected in (2, 3, 3, 3, 4):
        with limit.turn():
            pass
        assert limit.limit == expected
    limit.back_off()
    limit.back_off()  # The same trouble, met by another thread.
    assert limit.limit == 4 // 2
    for _ in range(100):
        with limit.turn():
            pass
    assert limit.limit == 8
    for _ in range(10):
        with pytest.raises(ZeroDivisionError), limit.turn():
            raise ZeroDivisionError
        limit.back_off()
        with limit.turn():
            pass
        limit.back_off()
    assert limit.limit == 1


def test_never_more_than_the_pace_allows_are_under_way() -> None:
    limit = parallel.ConcurrencyLimit(most=6, first=3)
    inside: list[int] = []
    seen: list[tuple[int, int]] = []

    def work(number: int, _: Advance) -> None:
        with limit.turn():
            inside.append(number)
            seen.append((len(inside), limit.limit))
            time.sleep(0.001)  # the work
            inside.remove(number)
        if number == 50:
            limit.back_off()

    parallel.each(range(200), work, lambda _: None, threads=16)
    assert max(count for count, _ in seen) <= 6
    assert len(seen) == 200


def test_what_the_watcher_raises_stops_the_transfer() -> None:
    """A deadline, or a lost attempt, comes this way."""
    moved: list[int] = []

    def watch(count: int) -> None:
        moved.append(count)
        if len(moved) == 5:
            raise TimeoutError

    def work(_: int, advance: Advance) -> None:
        for _ in range(100):
            advance(1)
            time.sleep(0.001)  # the work

    with pytest.raises(TimeoutError):
        parallel.each(range(40), work, watch, threads=4)
    assert len(moved) == 5
