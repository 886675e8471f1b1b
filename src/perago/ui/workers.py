"""The worker of this machine: executors, what each does, polling, last problems."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from perago.ui.responses import html
from perago.ui.sources import PageSources


def workers(request: Request) -> Response:
    """Show what the worker of the configured root last wrote of itself."""
    sources: PageSources = request.app.state.sources
    alive, state = sources.worker()
    found = state if alive else {}
    running = {run.get("execution_id"): run for run in _objects(found.get("running"))}
    return html(
        request,
        "workers.html",
        title="Workers",
        root=str(sources.settings.workspace_root),
        alive=alive,
        ready=bool(found.get("ready")),
        seen=state.get("written_at"),
        worker=found,
        counts=found.get("counts") or {},
        polls=found.get("polls") or {},
        executors=[
            (one, running.get(one.get("execution_id"))) for one in _objects(found.get("executors"))
        ],
        problems=_objects(found.get("problems")),
        now=sources.clock.now(),
    )


def _objects(value: object) -> list[dict[str, Any]]:
    """Take what a file says as a list of objects; it may be of another version."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
