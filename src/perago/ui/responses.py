"""Answers of the page, in one shape."""

from __future__ import annotations

import math
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from perago.ui.rendering import render


def html(request: Request, template: str, code: int = 200, **values: Any) -> Response:
    """Answer with a page; a script that asks for its main part gets the same, and takes that."""
    state = request.app.state
    text = render(
        template,
        path=request.url.path,
        home=str(state.sources.settings.home),
        changes=state.rules.changes,
        form_key=state.rules.keys.form,
        stores=state.sources.stores,
        **values,
    )
    return HTMLResponse(text, code)


def number(text: str) -> float | None:
    """Read a finite number; None where there is none."""
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None
