"""The page as a web application: what is at which address, and who may ask for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, parse_qsl, urlencode

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from perago.errors import NotFoundError, PeragoError
from perago.ui.access import HEADERS, OPEN, READING, Allow, Asked, Deny, Enter, Leave, Rules, judge
from perago.ui.attempt import attempt
from perago.ui.browse import browse, content
from perago.ui.changes import Watch
from perago.ui.compare import compare
from perago.ui.history import history, repositories
from perago.ui.previewing import Bounds, Previewer
from perago.ui.rendering import render
from perago.ui.report import report
from perago.ui.responses import html
from perago.ui.run import run
from perago.ui.runs import runs
from perago.ui.sources import PageSources
from perago.ui.workers import workers

LARGEST_FORM: Final = 64 * 1024
TOKEN: Final = "token"  # noqa: S105 - the name of it
LOOK_SECONDS: Final = 0.5


VERSIONS: Final = (
    # A ref may hold a slash, and an address arrives with ``%2F`` read already.
    Route("/browse/{store}/{repository}/{ref:path}", browse),
    Route("/content/{store}/{repository}/{ref:path}", content),
    Route("/compare/{store}/{repository}/{both:path}", compare),
)


def application(
    sources: PageSources,
    rules: Rules,
    cookie: str,
    *,
    secure: bool,
    ending: Callable[[], bool] = lambda: False,
    bounds: Bounds | None = None,
) -> ASGIApp:
    """Put the page together.

    ``ending`` says whether its server is about to stop; ``bounds`` are those of a preview.
    """
    static = StaticFiles(directory=Path(__file__).with_name("static"))
    app = Starlette(
        routes=[
            Route("/", runs),
            Route("/run/{run}", run),
            Route("/attempt/{execution}", attempt),
            Route("/history", repositories),
            Route("/history/{store}/{repository}", history),
            Route("/workers", workers),
            Route("/report", report),
            Route("/live", live),
            *VERSIONS,
            Mount("/static", static),
        ],
        exception_handlers={
            PeragoError: problem,
            404: nothing_there,
            Exception: failure,
        },
    )
    app.state.sources, app.state.rules, app.state.ending = sources, rules, ending
    app.state.previewer = Previewer(bounds or Bounds())
    return Gate(app, rules, cookie, secure=secure)


class Gate:
    """Stands before every page: judges the request, gives the cookie, dresses the answer."""

    def __init__(self, app: ASGIApp, rules: Rules, cookie: str, *, secure: bool) -> None:
        self._app = app
        self._rules = rules
        self._cookie = cookie
        self._secure = secure
        self._token_used = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        body = b"" if request.method in READING else await _body(request)
        answer = self._answer(request, body)
        if answer is None:
            await self._app(scope, _again(body or b"", receive), _dressed(send))
        else:
            await answer(scope, receive, _dressed(send))

    def _answer(self, request: Request, body: bytes | None) -> Response | None:
        if body is None:
            return HTMLResponse(render("refused.html", why="the form is too large"), 413)
        asked = Asked(
            method=request.method,
            path=request.url.path,
            host=request.headers.get("host", "").lower(),
            origin=request.headers.get("origin", ""),
            cookie=request.cookies.get(self._cookie, ""),
            token=request.query_params.get(TOKEN, ""),
            form=_field(body, "form_key"),
        )
        match judge(asked, self._rules, token_used=self._token_used):
            case Allow():
                return None
            case Enter():
                self._token_used = True
                answer = _without_token(request)
                answer.set_cookie(
                    self._cookie,
                    self._rules.keys.session,
                    httponly=True,
                    samesite="strict",
                    secure=self._secure,
                    path="/",
                )
                return answer
            case Leave():
                return _without_token(request)
            case Deny(status, why):
                return HTMLResponse(render("refused.html", why=why), status)


def _without_token(request: Request) -> Response:
    """Send the browser to the same place; the token is not in its history then."""
    kept = [pair for pair in parse_qsl(request.url.query) if pair[0] != TOKEN]
    query = f"?{urlencode(kept)}" if kept else ""
    path = request.scope["raw_path"].partition(b"?")[0].decode("ascii", "replace")
    path = "/" + path.lstrip("/\\")  # Two slashes would name another server.
    return RedirectResponse(f"{path}{query}", 303)


async def _body(request: Request) -> bytes | None:
    """Read a form that is small enough; None of a larger one."""
    found = b""
    async for part in request.stream():
        found += part
        if len(found) > LARGEST_FORM:
            return None
    return found


def _field(body: bytes, name: str) -> str:
    return parse_qs(body.decode("utf-8", "replace")).get(name, [""])[0]


def _again(body: bytes, receive: Receive) -> Receive:
    """Let the page read the form, which was read already."""
    given = False

    async def once() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return once


def _dressed(send: Send) -> Send:
    """Send our headers with every answer."""

    async def dressed(message: Message) -> None:
        if message["type"] == "http.response.start":
            ours = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
            names = {name for name, _ in ours}
            kept = [pair for pair in message["headers"] if pair[0].lower() not in names]
            message = {**message, "headers": [*kept, *ours]}
        await send(message)

    return dressed


# --- what is no page ----------------------------------------------------------------------------


async def live(request: Request) -> Response:
    """Tell a browser, whenever something has changed, that it has."""
    watch = Watch(request.app.state.sources.home)
    await anyio.to_thread.run_sync(watch.changed)  # Whatever comes after this answer is told.

    async def news() -> AsyncIterator[str]:
        try:
            yield "retry: 2000\n\n"
            while not request.app.state.ending() and not await request.is_disconnected():
                changed = await anyio.to_thread.run_sync(watch.changed)
                yield "data: changed\n\n" if changed else ": nothing\n\n"
                await anyio.sleep(LOOK_SECONDS)
        finally:
            watch.close()

    return StreamingResponse(news(), media_type="text/event-stream")


def problem(request: Request, error: Exception) -> Response:
    """Show an error of ours as one sentence."""
    absent = isinstance(error, NotFoundError)
    told = error if isinstance(error, PeragoError) else PeragoError(str(error))
    return html(
        request,
        "problem.html",
        404 if absent else 503,
        title="Not found" if absent else "This cannot be shown now",
        why=told.message,
        remedy=told.remedy or "",
    )


def nothing_there(request: Request, error: Exception) -> Response:  # noqa: ARG001 - of the framework
    """Say that an address is not one of the page's."""
    if request.url.path.startswith(OPEN):  # Asked by anybody: nothing of the home is told.
        return HTMLResponse(render("refused.html", why="there is no such file"), 404)
    why = f"there is no page at {request.url.path}"
    return html(request, "problem.html", 404, title="Not found", why=why, remedy="")


def failure(request: Request, error: Exception) -> Response:
    """Show a mistake of ours without its inside; the terminal has that."""
    why = f"Perago made a mistake here: {type(error).__name__}"
    remedy = "the terminal of 'perago ui' shows where"
    return html(request, "problem.html", 500, title="A mistake", why=why, remedy=remedy)
