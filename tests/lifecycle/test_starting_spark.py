"""The time a JVM takes to start is not that of the phase it happens in."""

from __future__ import annotations

from pathlib import Path

import pytest

from perago.attempt.progress import AttemptProgress
from perago.history.attempts import attempt_history
from perago.history.event_log import AttemptJournal, EventLog
from perago.protocol.events import OutcomeDecided
from perago.protocol.values import Attempt, Claim, Phase
from perago.testing.clock import ManualClock

CLAIM = Claim(Attempt("run", "task", 0, "step", "count"), {}, "execution")


def phases(progress: AttemptProgress, log: EventLog) -> dict[str, float | None]:
    progress.event(OutcomeDecided("COMPLETED"))
    found = attempt_history(log.of_execution("execution"))
    return {phase.name: phase.seconds for phase in found.state.phases}


@pytest.fixture
def log(tmp_path: Path) -> EventLog:
    """Open an event log of its own."""
    return EventLog(tmp_path / "events.sqlite")


def test_a_start_inside_of_a_phase_is_told_before_it(log: EventLog) -> None:
    clock = ManualClock()
    progress = AttemptProgress(AttemptJournal(log, CLAIM, clock), clock)
    with progress.phase(Phase.PRE):
        clock.advance(1)
    with progress.phase(Phase.BODY):
        clock.advance(2)
        with progress.starting_spark():
            clock.advance(10)
        clock.advance(3)
    with progress.phase(Phase.POST):
        clock.advance(4)
    assert list(phases(progress, log).items()) == [
        ("pre guardrail", 1),
        ("starting Spark", 10),
        ("body", 5),
        ("post guardrail", 4),
    ]


def test_a_start_that_fails_ends_no_phase(log: EventLog) -> None:
    clock = ManualClock()
    progress = AttemptProgress(AttemptJournal(log, CLAIM, clock), clock)
    with (
        pytest.raises(OSError, match="no java"),
        progress.phase(Phase.BODY),
        progress.starting_spark(),
    ):
        raise OSError("no java")
    assert phases(progress, log) == {"body": None}
