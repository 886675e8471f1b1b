"""One run: the workflow with the state of each step, the attempts along the time, what came out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final
from urllib.parse import quote

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from perago.history.attempts import AttemptHistory
from perago.protocol.printable import printable
from perago.redaction import hide
from perago.ui.gantt import GanttBar, GanttPart, gantt
from perago.ui.rendering import kind, took
from perago.ui.responses import html
from perago.ui.sources import PageSources
from perago.ui.values import pairs
from perago.workflow.graph import graph_of
from perago.workflow.graph_svg import StepLook, svg_of
from perago.workflow.progress import WorkflowExecution, WorkflowStep, place_of
from perago.workflow.records import RunRecord
from perago.workflow.tracing import walk

MOST_STEPS: Final = 150
"""A workflow of more steps is not drawn."""
MOST_ATTEMPTS: Final = 150
"""So many are drawn and listed; a run in a long loop has more."""


@dataclass(frozen=True, slots=True)
class Visible:
    """A version that a run left on a branch."""

    step: str
    repository: str
    branch: str
    ref: str


def run(request: Request) -> Response:
    """Show a run as it is now."""
    sources: PageSources = request.app.state.sources
    record = sources.run(request.path_params["run"])
    whole = sources.execution(record)
    state = sources.state(record)
    steps = whole.steps[-MOST_ATTEMPTS:]
    told = sources.attempts([step.execution_id for step in steps if step.execution_id])
    now = sources.clock.now()
    return html(
        request,
        "run.html",
        title=f"{whole.workflow} {record.id[:8]}",
        run=record,
        whole=whole,
        state=state,
        seconds=(record.ended_at or now) - record.created_at,
        steps=[(step, told.get(step.execution_id)) for step in steps],
        left_out=len(whole.steps) - len(steps),
        failed=_failed(steps),
        visible=visible(whole),
        graph=_graph(record, whole),
        gantt=Markup(hide(gantt(bars(steps, told, now)))),  # noqa: S704 - as above
        input=pairs(record.input),
        output=pairs(record.output),
    )


def _graph(record: RunRecord, whole: WorkflowExecution) -> Markup | None:
    """Draw the workflow; None of one that is too large to be looked at."""
    tasks = record.workflow.get("tasks")
    if sum(1 for _ in islice(walk(tasks), MOST_STEPS + 1)) > MOST_STEPS:
        return None
    drawn = svg_of(graph_of(record.workflow), looks(whole))
    return Markup(hide(drawn))  # noqa: S704 - the picture escapes what it writes


def _failed(steps: Sequence[WorkflowStep]) -> list[WorkflowStep]:
    """Return the last attempt of each step that failed and was not mended by a retry."""
    last = {step.name: step for step in steps}
    return [step for step in last.values() if kind(step.status) == "bad"]


def looks(whole: WorkflowExecution) -> dict[str, StepLook]:
    """Say of each step of the definition how its last attempt stands; rounds of a loop are one."""
    found: dict[str, StepLook] = {}
    counted: dict[str, int] = {}
    for step in whole.steps:
        name = printable(_without_round(step.name))
        counted[name] = counted.get(name, 0) + 1
        often = f", {counted[name]} attempts" if counted[name] > 1 else ""
        link = f"/attempt/{quote(step.execution_id, safe='')}" if step.execution_id else ""
        found[name] = StepLook(kind(step.status), f"{step.status}{often}", link)
    return found


def _without_round(name: str) -> str:
    step, mark, number = name.rpartition("__")
    return step if mark and number.isdecimal() else name


def bars(
    steps: Sequence[WorkflowStep], told: Mapping[str, AttemptHistory], now: float
) -> list[GanttBar]:
    """Turn attempts into bars; one that has not begun has none."""
    found = []
    for step in steps:
        if step.started_at is None:
            continue
        history = told.get(step.execution_id)
        ended = step.ended_at or now
        retry = f" (retry {step.retry})" if step.retry else ""
        found.append(
            GanttBar(
                label=f"{step.name}{retry}",
                kind=kind(step.status),
                says=f"{step.status}, {took(ended - step.started_at)}",
                began=step.started_at,
                ended=ended,
                link=f"/attempt/{quote(step.execution_id, safe='')}" if history else "",
                parts=_parts(history, ended) if history else (),
            )
        )
    return found


def _parts(history: AttemptHistory, ended: float) -> list[GanttPart]:
    return [
        GanttPart(
            phase.name,
            phase.began,
            ended if phase.seconds is None else phase.began + phase.seconds,
        )
        for phase in history.state.phases
    ]


def visible(whole: WorkflowExecution) -> list[Visible]:
    """List what the completed steps left: the last version of each branch."""
    found: dict[tuple[str, str], Visible] = {}
    for step in whole.steps:
        left = step.output.get("workspace")
        place = place_of(left)
        if step.status.startswith("COMPLETED") and place is not None and isinstance(left, Mapping):
            found[place] = Visible(step.name, *place, str(left["ref"]))
    return list(found.values())
