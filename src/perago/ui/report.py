"""How the newest attempts of each task went, in numbers."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from perago.ui.bars import share_bar
from perago.ui.responses import html
from perago.ui.sources import PageSources

ATTEMPTS: Final = 250
"""So many are added up: enough to see how the common tasks are, and quick in any home."""


def report(request: Request) -> Response:
    """Show counts, publish latencies and phases, task by task."""
    sources: PageSources = request.app.state.sources
    found, since = sources.figures(ATTEMPTS)
    longest = max((one.publish.p99 for one in found if one.publish), default=0.0)
    return html(
        request,
        "report.html",
        title="Report",
        since=since,
        attempts=sum(one.tallies.attempts for one in found),
        most=ATTEMPTS,
        tasks=[(one, share_bar(one.publish.p99, longest) if one.publish else "") for one in found],
    )
