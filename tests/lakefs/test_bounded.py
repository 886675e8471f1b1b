"""Nothing takes longer than it may, with the timeouts that users have (P11, section 13)."""

from __future__ import annotations

import time

import pytest

from perago import TimeoutPolicy
from perago.definition import definition_of
from perago.errors import StoreUnavailableError
from perago.protocol.values import Status
from tests.faults.proxy import Drip, Hang, LoseAnswer, Rule
from tests.lakefs import tasks
from tests.lakefs.bench import BRANCH, Bench
from tests.lakefs.tasks import GIVEN, MIB

USUAL_SECONDS = 30  # One call; a read is asked up to four times.


def test_p11_a_read_with_a_timeout_is_asked_once_and_ends_with_it(bench: Bench) -> None:
    bench.given(GIVEN)
    began = time.monotonic()
    with (
        bench.proxy.during(Rule(Hang(), "GET", "/branches/main$", times=None)),
        pytest.raises(StoreUnavailableError),
    ):
        bench.store.head(bench.repository, BRANCH, 0.5)
    assert time.monotonic() - began < USUAL_SECONDS / 2


def test_p11_a_hung_read_does_not_outlast_the_margin(bench: Bench) -> None:
    bench.given(GIVEN)
    began = time.monotonic()
    run = bench.run(
        tasks.step,
        Rule(LoseAnswer(), "POST", "/merge/main$"),
        Rule(Hang(), "GET", "/branches/main$", skip=3, times=None),
    )
    assert run.status is Status.FAILED
    assert "publish: OutcomeUnknownError" in run.reason
    assert time.monotonic() - began < USUAL_SECONDS / 2


def test_a_transfer_stops_when_the_time_of_the_attempt_is_over(bench: Bench) -> None:
    bench.given({"ws/data.bin": bytes(6 * MIB)})
    assert definition_of(tasks.hurried).controls.timeout == TimeoutPolicy(seconds=1)
    run = bench.run(tasks.hurried, Rule(Drip(MIB // 4, 0.2), "GET", r"/objects\?", times=None))
    assert run.status is Status.FAILED
    assert "download: StaleAttemptError: the time of the attempt was over" in run.reason
    assert bench.rooms() == []


def test_the_events_say_how_fast_it_was(bench: Bench) -> None:
    bench.given(GIVEN)
    run = bench.run(tasks.step)
    found = {
        event.name: event.facts
        for event in bench.lab._events.of_execution(run.execution_id)  # noqa: SLF001
    }
    for name in ("downloaded", "uploaded"):
        assert float(str(found[name]["seconds"])) > 0
        assert int(str(found[name]["bytes_per_second"])) > 0
