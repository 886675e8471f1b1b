"""What helps after a failed run: resuming it, or a new one. Pure.

A run keeps its workflow, its input and the version of the files it reads; only the code of its
tasks is taken as it is now. So resuming cannot help where one of the former is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from perago.history.attempts import AttemptHistory
from perago.protocol.values import Phase
from perago.workflow.records import SUCCESSFUL, TaskRecord
from perago.workflow.tasks import TaskKind

_MOVED = frozenset({Phase.FENCE_ONE, Phase.FENCE_TWO, Phase.PUBLISH})


def failed_in(attempts: Sequence[AttemptHistory]) -> str | None:
    """Return the phase in which the last unsuccessful execution ended, if it got so far."""
    failed = [one for one in attempts if not one.state.completed]
    return failed[-1].state.failed_in or None if failed else None


def ended_by(tasks: Iterable[TaskRecord]) -> str:
    """Return the TERMINATE step that ended a run; empty where none did."""
    found = (task for task in tasks if task.kind is TaskKind.TERMINATE)
    return next((task.step for task in found if task.status in SUCCESSFUL), "")


def next_steps(
    phase: str | None, run_id: str, again: str, terminate: str = ""
) -> list[tuple[str, str]]:
    """Return what can be done, as pairs of a text and a command; the most useful one first.

    ``terminate`` is the step by which the workflow itself ended the run.
    """
    resume = f"perago run --resume {run_id}"
    if terminate:
        why = f"step {terminate!r} ended the run, and would end it again if it were resumed"
        return [(f"{why}; with other input or other files, start a new run:", again)]
    if phase == Phase.INPUT:
        return [("resuming reads the same input; correct it, then start a new run:", again)]
    if phase == Phase.PRE:
        return [
            ("resuming reads the same files; correct them, then start a new run:", again),
            ("if the guardrail is wrong, change it, then resume with:", resume),
        ]
    if phase in _MOVED:
        return [
            ("if the branch has moved, start a new run from its head:", again),
            ("otherwise resume with:", resume),
        ]
    return [
        ("if the task is wrong, fix it, then resume with:", resume),
        ("if the workflow, its input or the files are wrong, start a new run:", again),
    ]
