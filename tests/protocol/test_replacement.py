"""Whether a publication is abandoned: every status of every writer's task (P2a)."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from perago.protocol.publication import Relocate, Replace, Situation, decide
from perago.protocol.replacement import (
    KIND,
    Objection,
    Standings,
    object_to_replacing,
    tasks_to_ask,
)
from perago.protocol.values import Attempt, Commit, Status
from tests.protocol.identities import EARLIER, ME, says

OTHER_STEP = replace(ME, reference_task_name="load:ref", task_id="task-9")
NEXT_ITERATION = replace(ME, iteration=1, task_id="task-9")
OTHER_WORKFLOW = replace(ME, workflow_instance_id="workflow-2", task_id="task-9")
WRITERS = {
    "the same attempt": ME,
    "an earlier attempt": EARLIER,
    "another step": OTHER_STEP,
    "another iteration": NEXT_ITERATION,
    "another workflow": OTHER_WORKFLOW,
}
SAME_STEP = {"the same attempt", "an earlier attempt"}
ENDED = {
    Status.FAILED,
    Status.FAILED_WITH_TERMINAL_ERROR,
    Status.TIMED_OUT,
    Status.CANCELED,
    Status.SKIPPED,
    Status.COMPLETED_WITH_ERRORS,
}
OPEN = {Status.SCHEDULED, Status.IN_PROGRESS}
ANSWERS: list[str | None] = [*Status, None, "", "PAUSED"]


def published_by(attempt: Attempt) -> Commit:
    return Commit("H", ("A",), metadata=says(attempt, "e"))


def objection(attempt: Attempt, standings: Standings) -> Objection | None:
    return object_to_replacing([published_by(attempt)], ME, standings)


def expected(writer: str, status: str | None) -> bool:
    """The sentence of P2a, once more: may it be replaced?"""
    if status is None:
        return writer != "another workflow"
    return status in ENDED or (status in OPEN and writer in SAME_STEP)


@pytest.mark.parametrize(("writer", "status"), [*product(WRITERS, ANSWERS)])
def test_p2a_what_the_broker_says_decides(writer: str, status: str | None) -> None:
    attempt = WRITERS[writer]
    found = objection(attempt, {attempt.task_id: status})
    assert (found is None) is expected(writer, status)
    for staged, written in (("C", Replace("H", "C")), (None, Relocate("H", "A"))):
        standings = {attempt.task_id: status}
        head = published_by(attempt)
        decision = decide("head", Situation("A", head, staged, ME, standings=standings))
        assert (decision == written) is expected(writer, status)


@pytest.mark.parametrize("writer", WRITERS)
def test_p2a_a_task_that_was_not_asked_for_is_never_taken_for_abandoned(writer: str) -> None:
    assert objection(WRITERS[writer], {"another task": Status.FAILED}) is not None


def test_p2a_the_refusal_names_the_step_and_the_fix() -> None:
    found = objection(OTHER_STEP, {"task-9": Status.COMPLETED})
    assert found is not None
    assert "'load:ref'" in found.reason
    assert "COMPLETED" in found.reason
    assert '"workspace": "${load:ref.output.workspace}"' in found.remedy
    found = objection(OTHER_WORKFLOW, {"task-9": Status.COMPLETED})
    assert found is not None
    assert "another workflow" in found.reason
    assert "new workflow" in found.remedy


@pytest.mark.parametrize("kind", ["import", "fence", "revert", "anything"])
def test_p2a_a_commit_of_ours_outside_attempts_is_never_replaced(kind: str) -> None:
    head = Commit("H", ("A",), metadata={KIND: kind})
    found = object_to_replacing([head], ME, {})
    assert found is not None
    assert kind in found.reason


def test_s5_a_commit_without_metadata_is_judged_by_its_place_alone() -> None:
    assert object_to_replacing([Commit("H", ("A",))], ME, {}) is None


def test_s5_metadata_never_permits_what_its_absence_would_not() -> None:
    """Whatever a commit says, the decision without it is at least as free."""
    silent = decide("head", Situation("A", Commit("H", ("A",)), "C", ME))
    assert silent == Replace("H", "C")


def test_p2a_one_wanted_publication_of_several_is_enough_to_refuse() -> None:
    mine, done = published_by(EARLIER), published_by(OTHER_STEP)
    standings = {EARLIER.task_id: Status.TIMED_OUT, "task-9": Status.COMPLETED}
    assert object_to_replacing([mine], ME, standings) is None
    assert object_to_replacing([mine, done], ME, standings) is not None


def test_each_task_is_asked_for_once_and_strangers_not_at_all() -> None:
    commits = [
        published_by(EARLIER),
        published_by(EARLIER),
        Commit("X", ()),
        published_by(OTHER_STEP),
    ]
    assert tasks_to_ask(commits) == (EARLIER.task_id, OTHER_STEP.task_id)
