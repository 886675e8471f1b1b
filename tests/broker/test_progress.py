"""A workflow as whoever watches it sees it: what happened between two looks."""

from __future__ import annotations

from dataclasses import replace

from perago.brokers.conductor.executions import execution_of
from perago.protocol.events import PublicationDecided, PublicationVerified
from perago.workflow.progress import (
    WorkflowExecution,
    WorkflowStep,
    news,
    place_of,
    published_by,
    renewed,
)

PLACE = {"repository": "words", "branch": "main", "ref_type": "commit", "ref": "aaa"}
STEP = WorkflowStep("t0", "count", 0, "SCHEDULED", input={"workspace": PLACE})
EMPTY = WorkflowExecution("w", "words", 1, "RUNNING", "", {}, {})


def told(before: WorkflowExecution | None, *steps: WorkflowStep) -> list[str]:
    now = replace(EMPTY, steps=steps)
    return [str(event["event"]) for event in news(before, now, published_by)]


def test_each_change_is_told_once() -> None:
    waiting, running = STEP, replace(STEP, status="IN_PROGRESS")
    done = replace(STEP, status="COMPLETED", output={"workspace": {**PLACE, "ref": "bbb"}})
    assert told(None, waiting) == ["task_scheduled"]
    assert told(replace(EMPTY, steps=(waiting,)), waiting) == []
    assert told(replace(EMPTY, steps=(waiting,)), running) == ["task_claimed", "task_running"]
    ends = ["message", "message", "task_finished"]
    assert told(replace(EMPTY, steps=(running,)), done) == ends
    assert told(replace(EMPTY, steps=(done,)), done) == []
    assert told(None, done) == ["task_scheduled", "task_claimed", "task_running", *ends]


def test_a_retry_is_told_with_its_wait() -> None:
    failed = replace(STEP, status="FAILED", reason="no")
    retry = WorkflowStep("t1", "count", 1, "SCHEDULED", wait_seconds=60)
    events = list(
        news(replace(EMPTY, steps=(failed,)), replace(EMPTY, steps=(failed, retry)), published_by)
    )
    assert [(event["event"], event["in_seconds"]) for event in events] == [("task_retry", 60)]


def test_what_an_attempt_did_is_read_from_its_two_ends() -> None:
    kept = replace(STEP, output={"workspace": PLACE})
    assert list(published_by(kept)) == [PublicationDecided(kind="keep")]
    assert list(published_by(STEP)) == []
    moved = replace(STEP, output={"workspace": {**PLACE, "ref": "bbb"}})
    assert list(published_by(moved))[1] == PublicationVerified(ref="bbb")


def test_a_restart_takes_every_workspace_to_the_head_and_nothing_else() -> None:
    other = {**PLACE, "branch": "gold", "more": 1}
    given = {"workspace": PLACE, "other": other, "day": "2026-03-02", "ref": {"ref": "x"}}
    found = renewed(given, {("words", "main"): "ccc", ("words", "gold"): "ddd"})
    assert found == {
        **given,
        "workspace": {**PLACE, "ref": "ccc"},
        "other": {**other, "ref": "ddd"},
    }
    others: list[object] = [None, {}, {"ref": 1}, []]
    assert [place_of(value) for value in others] == [None] * 4
    assert place_of(PLACE) == ("words", "main")


def test_what_conductor_leaves_out_is_empty() -> None:
    bare = execution_of({})
    assert (bare.status, bare.steps, bare.version) == ("", (), 1)
    odd = execution_of({"tasks": [None, {}, {"seq": 1, "workflowTask": {"type": "JOIN"}}]})
    assert [step.kind for step in odd.steps] == ["SIMPLE", "JOIN"]
