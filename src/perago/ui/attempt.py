"""One attempt from the inside: input, phases, guards, changes, decision, end."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from perago.history.attempts import AttemptHistory
from perago.protocol.values import Status
from perago.ui.bars import share_bar
from perago.ui.responses import html
from perago.ui.sources import PageSources
from perago.ui.values import pairs

MOST_PATHS: Final = 200
MOST_LINES: Final = 100
"""So many guards, metrics and warnings are shown."""


def attempt(request: Request) -> Response:
    """Show what the event log and the state know of an attempt."""
    sources: PageSources = request.app.state.sources
    told = sources.attempt(request.path_params["execution"])
    record = sources.task(told.attempt.task_id)
    change = told.state.changed
    running = sources.is_running(told)
    return html(
        request,
        "attempt.html",
        title=f"{told.attempt.reference_task_name} {told.execution_id[:8]}",
        told=told,
        state=told.state,
        workspace=told.workspace,
        store=told.store or "embedded",
        running=running,
        status=str(Status.IN_PROGRESS) if running else told.ending,
        seconds=(sources.clock.now() if running else told.last_at) - told.started_at,
        guards=told.guards[:MOST_LINES],
        said=[*told.metrics[:MOST_LINES], *told.warnings[:MOST_LINES]],
        left_out=sum(
            max(0, len(each) - MOST_LINES) for each in (told.guards, told.metrics, told.warnings)
        ),
        phases=_phases(told),
        change=change,
        counts=change.counts if change else (0, 0, 0),
        most=MOST_PATHS,
        input=pairs(record.input) if record else [],
        result=pairs(record.output) if record else [],
        worker=record.executor_id if record else "",
    )


def _phases(told: AttemptHistory) -> list[tuple[str, float | None, object]]:
    """List phases with their seconds and a bar that shows their share."""
    longest = max((phase.seconds or 0.0 for phase in told.state.phases), default=0.0)
    return [
        (phase.name, phase.seconds, share_bar(phase.seconds or 0.0, longest))
        for phase in told.state.phases
    ]
