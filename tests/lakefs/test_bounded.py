"""Nothing takes longer than it may, with the timeouts that users have (P11, section 13)."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from perago import TimeoutPolicy
from perago.attempt.publisher import POLL_SECONDS
from perago.errors import StoreUnavailableError
from perago.protocol.values import Status
from perago.tasks.declaration import definition_of
from perago.testing import Run
from tests.faults.proxy import Drip, Hang, LoseAnswer, Rule
from tests.lakefs import tasks
from tests.lakefs.bench import BRANCH, Bench
from tests.lakefs.tasks import GIVEN, HURRY_SECONDS, MARGIN_SECONDS, MIB

SHORT_SECONDS = 0.5


def test_p11_a_read_with_a_timeout_is_asked_once_and_ends_with_it(bench: Bench) -> None:
    bench.given(GIVEN)
    hang = Rule(Hang(), "GET", "/branches/main$", times=None)
    with bench.proxy.during(hang), pytest.raises(StoreUnavailableError) as told:
        bench.store.head(bench.repository, BRANCH, SHORT_SECONDS)
    assert hang.met <= 1
    assert waited(str(told.value)) <= SHORT_SECONDS


@pytest.mark.usefixtures("impatient")
def test_p11_a_hung_read_does_not_outlast_the_margin(bench: Bench) -> None:
    bench.given(GIVEN)
    run = bench.run(
        tasks.step,
        Rule(LoseAnswer(), "POST", "/merge/main$"),
        Rule(Hang(), "GET", "/branches/main$", skip=3, times=None),
    )
    assert run.status is Status.FAILED
    assert "publish: OutcomeUnknownError" in run.reason
    asked = [str(facts["why"]) for name, facts in events(bench, run) if name == "warning"]
    assert len(asked) >= 2  # One that hangs is not the only one in it.
    assert sum(map(waited, asked)) <= MARGIN_SECONDS + POLL_SECONDS


def waited(words: str) -> float:
    """Read how long an answer was waited for."""
    found = re.search(r"nothing came within ([0-9.]+) s", words)
    assert found, words
    return float(found[1])


def events(bench: Bench, run: Run) -> list[tuple[str, Mapping[str, object]]]:
    found = bench.lab._events.of_execution(run.execution_id)  # noqa: SLF001
    return [(one.event.title, one.event.facts) for one in found]


def test_a_transfer_stops_when_the_time_of_the_attempt_is_over(bench: Bench) -> None:
    bench.given({"ws/data.bin": bytes(6 * MIB)})
    controls = definition_of(tasks.hurried).controls
    assert controls.timeout == TimeoutPolicy(seconds=HURRY_SECONDS)
    drops = Drip(MIB // 4, 0.2 * HURRY_SECONDS)  # All of them take five times as long.
    run = bench.run(tasks.hurried, Rule(drops, "GET", r"/objects\?", times=None))
    assert run.status is Status.FAILED
    assert "download: StaleAttemptError: the time of the attempt was over" in run.reason
    assert bench.attempt_dirs() == []


def test_the_events_say_how_fast_it_was(bench: Bench) -> None:
    bench.given(GIVEN)
    run = bench.run(tasks.step)
    found = dict(events(bench, run))
    for name in ("downloaded", "uploaded"):
        assert float(str(found[name]["seconds"])) > 0
        assert int(str(found[name]["bytes_per_second"])) > 0
