"""The list of runs."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from perago.brokers.local.listing import RunQuery
from perago.ui.responses import html, number
from perago.ui.sources import PageSources
from perago.workflow.records import RunStatus

PAGE: Final = 50
LONGEST_NAME: Final = 500
MOST_NAMES: Final = 200


def runs(request: Request) -> Response:
    """Show the runs of the home, newest first, a page of them."""
    sources: PageSources = request.app.state.sources
    asked = request.query_params
    status = asked.get("status", "")
    name = asked.get("workflow", "")[:LONGEST_NAME]
    query = RunQuery(
        status=status if status in {*RunStatus} else "",
        name=name,
        before=_key(asked.get("before", "")),
        limit=PAGE + 1,
    )
    found = sources.runs(query)
    more = found[PAGE - 1][0] if len(found) > PAGE else None
    return html(
        request,
        "runs.html",
        title="Runs",
        runs=found[:PAGE],
        workflows=sources.workflows()[:MOST_NAMES],
        statuses=[str(status) for status in RunStatus],
        status=query.status,
        workflow=name,
        first=query.before is None,
        next_key=f"{more.created_at!r}/{more.id}" if more else "",
    )


def _key(text: str) -> tuple[float, str] | None:
    """Read where a page begins; one that cannot be read begins at the newest run."""
    at, _, run_id = text.partition("/")
    moment = number(at)
    return None if moment is None or not run_id else (moment, run_id)
