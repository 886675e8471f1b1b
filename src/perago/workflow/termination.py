"""What a TERMINATE does, read off its input. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from perago.workflow.fields import Fields
from perago.workflow.records import RunStatus

STATUS: Final = "terminationStatus"
REASON: Final = "terminationReason"
OUTPUT: Final = "workflowOutput"
_STATUSES: Final = (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.TERMINATED)


def check_termination(fields: Fields) -> None:
    """Refuse input that Conductor does not register, or that it ignores."""
    for key in fields.data:
        if key not in {STATUS, REASON, OUTPUT}:
            raise fields.refuse(key, "is not input of a TERMINATE task", f"remove {key}")
    if fields.data.get(STATUS) not in _STATUSES:
        raise fields.wrong(STATUS, "one of " + ", ".join(_STATUSES))
    fields.text(REASON, "")


def output_of(given: Mapping[str, object]) -> dict[str, object]:
    """Return the output of the task, which becomes that of the run."""
    wanted = given.get(OUTPUT)
    if wanted is None:
        return {}
    return dict(wanted) if isinstance(wanted, Mapping) else {"output": wanted}


def end_of(given: Mapping[str, object], task_id: str) -> tuple[RunStatus, str]:
    """Return how the run ends and why.

    A reason that is not a text is written out; Conductor cannot end such a run at all.
    """
    status, reason = RunStatus(str(given.get(STATUS))), given.get(REASON)
    text = "" if reason is None else str(reason)
    return status, text if text.strip() else f"Workflow is {status} by TERMINATE task: {task_id}"
