"""Events: each is read back as it was written, and nothing that was written ends a reader."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perago.protocol import events
from perago.protocol.attempt_state import STARTING_SPARK, AttemptState
from perago.protocol.event_format import KINDS, read
from perago.protocol.events import Event, Severity
from perago.protocol.points import POINTS
from perago.protocol.values import Phase
from perago.protocol.worker_events import WorkerEvent

FACTS: dict[str, Any] = {
    "str": "x",
    "int": 3,
    "float": 0.5,
    "str | None": "y",
    "int | None": 4,
    "float | None": 0.25,
    "Sequence[str]": ("a", "b"),
    "Mapping[str, object]": {"k": "v"},
    "Mapping[str, object] | None": {"k": "v"},
}
PHASES: list[Event] = [
    event for phase in Phase for event in (events.PhaseBegan(phase), events.PhaseEnded(phase, 1.5))
]
FULL: list[Event] = [
    kind(**{one.name: FACTS[str(one.type)] for one in fields(kind)}) for kind in KINDS.values()
]


def again(event: Event) -> Event:
    """Write and read it, as the event log and the channel of an executor do."""
    return read(event.title, json.loads(json.dumps(event.facts)))


def test_an_event_is_read_as_it_was_written() -> None:
    for event in [*PHASES, *FULL, events.UnknownEvent("of another version", {"a": 1})]:
        assert again(event) == event


def test_what_there_is_nothing_of_is_not_written() -> None:
    guard = events.GuardAsked("body", "g", None)
    assert guard.facts == {"phase": "body", "guard": "g", "violation": None}
    assert events.OutcomeDecided("COMPLETED").facts == {
        "status": "COMPLETED",
        "reason": "",
        "output": {},
    }
    assert again(guard) == guard


def test_every_point_has_a_type() -> None:
    for name in POINTS:
        assert not isinstance(
            read(name, {"added": [], "changed": [], "removed": []}), events.UnknownEvent
        ), name


JSON = st.sampled_from(
    [None, True, 3, -1, 0.5, math.nan, "", "x", [], [1], ["a", None], {}, {"a": [1]}, [[["b"]]]]
)
NAMES = [event.title for event in PHASES + FULL] + ["", "before nothing", "decided later"]


@given(st.sampled_from(NAMES), st.data())
def test_whatever_was_written_can_be_read_and_folded(name: str, data: st.DataObject) -> None:
    """An executor runs code of others, and a log may be of another version."""
    kind = KINDS.get(name)
    known = [one.name for one in fields(kind)] if kind else []
    keys = st.sampled_from([*known, "seconds", "else"])
    event = read(name, data.draw(st.dictionaries(keys, JSON)))
    assert event.title == name
    state = AttemptState()
    state = state.after(event, 0.0)
    assert state.summary is not None
    assert isinstance(event.durable, bool)


def test_a_fact_of_another_type_is_left_out_where_it_can_be() -> None:
    cut = {"status": "FAILED", "output": "{'a': ...", "reason": "body: no"}
    assert read("decided", cut) == events.OutcomeDecided("FAILED", "body: no")
    assert isinstance(read("decided", {"reason": "body: no"}), events.UnknownEvent)
    assert read("uploaded", {"files": True, "bytes": 3}) == events.Uploaded(0, 3)


@pytest.mark.parametrize("count", [0, 1, 200, 201, 5000])
def test_a_list_that_was_cut_is_counted_whole(count: int) -> None:
    paths = [f"p{number}" for number in range(count)]
    change = read("changed", {"added": events.cut(paths, 200), "changed": [], "removed": []})
    assert isinstance(change, events.Changed)
    assert change.counts == (count, 0, 0)


def test_severities() -> None:
    grave = {event.title: event.SEVERITY for event in FULL if event.SEVERITY is not Severity.INFO}
    assert grave == {
        "outcome unknown": Severity.WARNING,
        "warning": Severity.WARNING,
        "lost completion": Severity.WARNING,
        "traceback": Severity.ERROR,
    }
    quiet = {event for event in WorkerEvent if event.severity is Severity.INFO}
    assert {str(event) for event in quiet} == {
        *("started", "draining", "ended", "executor started", "executor recycled", "polled"),
        *("given back", "swept", "reported for the dead", "report not wanted"),
    }


def folded(*given: Event) -> AttemptState:
    state = AttemptState()
    for at, event in enumerate(given):
        state = state.after(event, float(at))
    return state


BODY, DIFF = events.PhaseBegan(Phase.BODY), events.PhaseBegan(Phase.DIFF)
END = events.PhaseEnded(Phase.BODY, 2.0)


def test_the_fold_knows_the_phase_and_how_long_each_took() -> None:
    assert folded().phase == folded().last_phase == ""
    assert folded(BODY).phase == "body"
    after = folded(BODY, END)
    assert (after.phase, after.last_phase, after.seconds) == ("", "body", {"body": 2.0})
    assert folded(BODY, END, DIFF).phase == "diff"


def test_the_start_of_spark_comes_before_the_phase_that_asked_for_it() -> None:
    starting = folded(BODY, events.SparkStarting())
    assert starting.starting_spark
    started = folded(BODY, events.SparkStarting(), events.SparkStarted(9.0), END)
    assert [phase.name for phase in started.phases] == [STARTING_SPARK, "body"]
    assert started.spark_seconds == 9.0
    assert not started.starting_spark


def test_where_it_failed_is_what_the_outcome_says_or_the_first_phase_without_an_end() -> None:
    failed = events.OutcomeDecided("FAILED", "body: no", phase="body")
    clean = (
        events.PhaseBegan(Phase.CLEAN_ATTEMPT_DIR),
        events.PhaseEnded(Phase.CLEAN_ATTEMPT_DIR, 0.1),
    )
    assert folded(BODY, failed, *clean).failed_in == "body"
    assert folded(BODY, *clean).failed_in == "body"
    assert folded(events.OutcomeDecided("FAILED", "input: no", phase="input")).failed_in == "input"
    assert folded(BODY, END).failed_in == ""


def test_what_was_moved_and_decided() -> None:
    state = folded(
        events.Downloaded(1, 10),
        events.Changed(("a",), (), ("b", "c")),
        events.Uploaded(1, 5, 2),
        events.PublicationDecided("merge", "r", "main", "h"),
        events.PublicationVerified("c1", "head"),
    )
    assert state.ref == "c1"
    assert {key: state.summary[key] for key in ("added", "changed", "removed", "ref")} == {
        "added": 1,
        "changed": 0,
        "removed": 2,
        "ref": "c1",
    }
    assert state.decided_at == 3.0


def test_however_much_is_sent_the_state_stays_small() -> None:
    """An executor runs code of others: what it sends must not grow in the supervisor (W4)."""
    state = folded(*[BODY, events.SparkStarting(), events.SparkStarted(1.0)] * 2_000)
    assert len(state.phases) <= 101
    assert state.after(END, 0.0).last_phase == "body"
