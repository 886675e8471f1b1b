"""Why a person's step did not come through, said to the person, with what to do (Q12)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from perago.app.human import LOCAL, Human
from perago.app.run_state import INTERRUPTED, state_of
from perago.errors import TaskFailed
from perago.human.attempts import HumanStep
from perago.human.directory import TakenDirectory
from perago.protocol.outcome import Outcome
from perago.protocol.values import Commit

if TYPE_CHECKING:
    from perago.workflow.human import HumanTask

UNTOUCHED: Final = "your files are untouched"
_SAID: Final = {
    "correct the task": "correct your files",
    "before the task returns": "before you submit",
    "end every thread and process of the task before it returns": "end what writes there",
    "let the task finish all writing before it returns": "end what writes there",
}
"""What is advised to the author of a task, and what to a person instead."""
_TYPE: Final = re.compile(r"^([\w ]+: )\w+(?:Error|Violation): ")


def refusal_of(
    human: Human, step: HumanStep, taken: TakenDirectory | None, outcome: Outcome
) -> TaskFailed:
    """Say why a submit did not complete the step, and what to do."""
    now = human.engine(step.task.where).tasks.task(step.task.attempt.task_id)
    if outcome.completed or not step.task.is_still(now):
        ref = published_by(step, outcome)
        return lost(human, taken, now, ref) if taken else gone(step.task)
    reason = for_a_person(outcome.reason)
    if outcome.refused_by == "publish" and taken is not None:
        return TaskFailed(
            reason,
            remedy=f"submitting again may not help; {UNTOUCHED}, and can be brought to another"
            f" attempt with: perago human take STEP NEWDIR --edits {taken.path}",
        )
    return TaskFailed(reason, remedy=f"then submit again; {UNTOUCHED}" if taken else "submit again")


def for_a_person(reason: str) -> str:
    """Say it to somebody who has files, not a program: no type of an error, no task to correct."""
    said = _TYPE.sub(r"\1", reason, count=1)
    for to_an_author, to_a_person in _SAID.items():
        said = said.replace(to_an_author, to_a_person)
    return said


def lost(
    human: Human, taken: TakenDirectory, now: HumanTask | None, published: str = ""
) -> TaskFailed:
    """Say that the attempt is over, that nothing is lost, and how to go on (Q12)."""
    engine = human.engine(taken.where)
    same = [
        task
        for task in engine.tasks.waiting()
        if task.attempt.logical_task_key == taken.attempt.logical_task_key
    ]
    end = f": it is {now.end}" if now and not now.open else ": it was given out anew"
    there = f"; {published[:12]} is on the branch and does not count" if published else ""
    problem = f"step {taken.attempt.reference_task_name!r} is no longer open as it was taken{end}"
    if not same and _was_left(human, taken):
        run = taken.attempt.workflow_instance_id
        remedy = f"{UNTOUCHED}; its run was left before it continued: perago run --resume {run}"
        return TaskFailed(problem + there, remedy=remedy)
    which = same[0].attempt.task_id[:8] if same else "STEP"
    known = "it waits again" if same else "if it comes again"
    return TaskFailed(
        problem + there,
        remedy=f"{UNTOUCHED}; {known}: perago human take {which} NEWDIR --edits {taken.path}",
    )


def gone(task: HumanTask) -> TaskFailed:
    """Say that a step without files is over."""
    return TaskFailed(
        f"step {task.step!r} is no longer open: it was done or ended meanwhile",
        remedy="'perago human list' shows the steps that wait",
    )


def published_for(step: HumanStep) -> Commit | None:
    """Return what was published for a step that is still open, if anything was."""
    workspace = step.workspace
    if workspace is None or not step.definition.writable:
        return None
    head = step.store.head(workspace.repository, workspace.branch)
    same = head.metadata.get("perago.task_id") == step.task.attempt.task_id
    return head if same else None


def published_by(step: HumanStep, outcome: Outcome) -> str:
    """Return what a submit left on the branch, where that is new."""
    workspace = outcome.output.get("workspace")
    ref = workspace.get("ref") if isinstance(workspace, Mapping) else None
    return str(ref) if ref and step.workspace and ref != step.workspace.ref else ""


def _was_left(human: Human, taken: TakenDirectory) -> bool:
    """Return whether a local run has nobody who takes it further, and waits for nobody."""
    if taken.where != LOCAL:
        return False
    run = human.home.state.run(taken.attempt.workflow_instance_id)
    return state_of(human.home, run.id, run.status) == INTERRUPTED
