"""Who wrote what: the attempts of one step, their twins, and strangers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum

from perago.protocol.replacement import Standings
from perago.protocol.values import Attempt, Status

ME = Attempt(
    workflow_instance_id="workflow-1",
    task_id="task-2",
    retry_count=1,
    reference_task_name="clean_ref",
    task_def_name="clean",
    seq=3,
)
EARLIER = replace(ME, task_id="task-1", retry_count=0)
MY_EXECUTION = "execution-mine"
MY_KEY = "workflow-1:clean_ref:0"


class Writer(Enum):
    """Everyone whose commit an attempt can meet on its target."""

    MINE = "this very execution"
    TWIN = "a second delivery of the same attempt"
    EARLIER = "an earlier attempt of the same step"
    OTHER = "another step"
    SILENT = "somebody who left no metadata"


def says(attempt: Attempt, execution_id: str) -> dict[str, str]:
    """Spell the identity that a commit of this attempt carries."""
    return {
        "perago.logical_task_key": attempt.logical_task_key,
        "perago.workflow_instance_id": attempt.workflow_instance_id,
        "perago.task_id": attempt.task_id,
        "perago.retry_count": str(attempt.retry_count),
        "perago.execution_id": execution_id,
    }


METADATA: Mapping[Writer, Mapping[str, str]] = {
    Writer.MINE: says(ME, MY_EXECUTION),
    Writer.TWIN: says(ME, "execution-twin"),
    Writer.EARLIER: says(EARLIER, "execution-earlier"),
    Writer.OTHER: says(
        replace(ME, reference_task_name="load_ref", task_id="task-9"), "execution-9"
    ),
    Writer.SILENT: {},
}
ABANDONED: Standings = {
    ME.task_id: Status.IN_PROGRESS,
    EARLIER.task_id: Status.TIMED_OUT,
    "task-9": Status.FAILED,
}
"""What the broker says when nothing on the branch was ever accepted as completed."""
