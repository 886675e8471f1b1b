"""How many claims are asked for: never more than can be run, a batch ahead while all is short."""

from __future__ import annotations

import threading

from perago.testing import ManualClock
from perago.worker.claim_queue import ClaimQueue
from tests.patience import LIMIT
from tests.process.executors import claim


def claim_queue() -> tuple[ClaimQueue, list[int], ManualClock]:
    woken: list[int] = []
    clock = ManualClock()
    return ClaimQueue(lambda: woken.append(1), clock), woken, clock


def test_nothing_is_asked_for_without_an_executor() -> None:
    one, _, _ = claim_queue()
    assert one.demand(0) == 0
    assert one.take(0, 0) == []
    assert one.demand(0) == 0


def test_as_many_are_asked_for_as_executors_are_idle_or_about_to_be() -> None:
    one, woken, _ = claim_queue()
    one.take(2, 1)
    assert one.demand(0) == 3
    assert one.offer([claim("a"), claim("b")])
    assert woken == [1]
    assert one.demand(0) == 1
    assert [found.execution_id for found in one.take(1, 0)] == ["a"]
    assert one.demand(0) == 0, "b waits for the next one"


def test_ahead_is_asked_for_several_at_a_time() -> None:
    one, _, _ = claim_queue()
    one.take(0, 0, ahead=4)
    assert one.demand(0) == 4
    one.offer([claim(name) for name in "abcd"])
    assert one.demand(0) == 0
    one.take(1, 0, ahead=4)
    assert one.demand(0) == 0, "one more would be a poll for one"
    one.take(1, 0, ahead=4)
    assert one.demand(0) == 2
    one.take(2, 0, ahead=4)
    one.take(1, 0, ahead=4)
    assert one.demand(0) == 5, "now one waits for it"


def test_a_claim_that_waits_too_long_is_taken_out() -> None:
    one, _, clock = claim_queue()
    one.offer([claim("a")])
    clock.advance(1)
    one.offer([claim("b")])
    assert [found.execution_id for found in one.overdue(0.5)] == ["a"]
    assert [found.execution_id for found in one.take(2, 0)] == ["b"]


def test_a_lost_claim_is_dropped() -> None:
    one, _, _ = claim_queue()
    one.offer([claim("a"), claim("b")])
    assert one.drop("a")
    assert not one.drop("a")
    assert [found.execution_id for found in one.close()] == ["b"]


def test_rest_asks_for_nothing() -> None:
    one, _, _ = claim_queue()
    one.take(2, 2, ahead=2)
    one.rest()
    assert one.demand(0) == 0


def test_closing_wakes_the_poller_and_returns_what_is_left() -> None:
    one, _, _ = claim_queue()
    one.offer([claim("a")])
    heard: list[int] = []
    thread = threading.Thread(target=lambda: heard.append(one.demand(10 * LIMIT)))
    thread.start()
    assert [found.execution_id for found in one.close()] == ["a"]
    thread.join(LIMIT)
    assert heard == [0]
    assert not one.offer([claim("b")])
    assert one.closed
