"""One version: a directory of it, or a file. Images have an address of their own."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from perago.errors import NotFoundError
from perago.protocol.printable import brief
from perago.protocol.values import Commit, ObjectInfo
from perago.ui.contents import image_type
from perago.ui.files import IMAGE_BYTES, file_view, shapes_of, table_view
from perago.ui.fitting import cut
from perago.ui.levels import crumbs
from perago.ui.responses import html
from perago.ui.tables import looks_like_table
from perago.ui.versions import CommitView, version_of

_MOST_NOTES: Final = 40
_LONGEST_NOTE: Final = 200
_LONGEST_MESSAGE: Final = 1000
_MOST_PARENTS: Final = 10
_CRUMBS: Final = 8_000
"""A path of a thousand slashes would repeat itself a thousand times."""


def browse(request: Request) -> Response:
    """Show what is at a path of a version."""
    version = version_of(request, request.path_params["ref"])
    path = request.query_params.get("path", "")
    as_object = not path.endswith("/") or "object" in request.query_params
    info = version.find(path) if as_object else None
    return _directory(request, version, path) if info is None else _file(request, version, info)


def _directory(request: Request, version: CommitView, path: str) -> Response:
    directory = path if not path or path.endswith("/") else f"{path}/"
    after = request.query_params.get("after", "")
    level = version.level(directory, after)
    if directory and not level.entries and not after:
        raise NotFoundError(f"there is nothing at {brief(path)!r} in {brief(version.ref)!r}")
    as_table = request.query_params.get("as") == "table"
    view = table_view(request.app.state.previewer, version, directory) if as_table else None
    return html(
        request,
        "browse.html",
        **page_of(version, directory),
        info=None,
        level=level if view is None else None,
        first=not after,
        view=view,
        table_likely=bool(directory) and looks_like_table(level),
        shapes=(),
    )


def _file(request: Request, version: CommitView, info: ObjectInfo) -> Response:
    wanted = request.query_params.get("as", "")
    view = file_view(request.app.state.previewer, version, info, wanted)
    return html(
        request,
        "browse.html",
        **page_of(version, info.key),
        info=info,
        level=None,
        first=True,
        view=view,
        table_likely=False,
        shapes=shapes_of(info.key, view["kind"]),
    )


def page_of(version: CommitView, path: str) -> dict[str, Any]:
    """Return what the top of a page says of a version and a path."""
    return {
        "title": f"{brief(path) or version.repository} at {version.name}",
        "version": version,
        "commit": version.commit,
        "at": path,
        "crumbs": crumbs(path) if _repeated(path) <= _CRUMBS else [(brief(path), path)],
        "facts": commit_facts(version.commit),
    }


def _repeated(path: str) -> int:
    return sum(len(whole) for _, whole in crumbs(path))


def commit_facts(commit: Commit) -> dict[str, Any]:
    """Return what a commit says of itself: who, what, and all else that it was given. Pure."""
    notes = dict(sorted(commit.metadata.items())[:_MOST_NOTES])
    return {
        "who": cut(notes.get("perago.person", ""), _LONGEST_NOTE),
        "task": cut(notes.get("perago.task", ""), _LONGEST_NOTE),
        "execution": notes.get("perago.execution_id", "")[:_LONGEST_NOTE],
        "message": cut(commit.message, _LONGEST_MESSAGE),
        "parents": commit.parents[:_MOST_PARENTS],
        "notes": [(cut(name, 80), cut(text, _LONGEST_NOTE)) for name, text in notes.items()],
    }


def content(request: Request) -> Response:
    """Serve an image as what it is, told by its first bytes; nothing else is served (Z4)."""
    version = version_of(request, request.path_params["ref"])
    path = request.query_params.get("path", "")
    info = version.find(path)
    if info is None:
        raise NotFoundError(f"there is nothing at {brief(path)!r} in {brief(version.ref)!r}")
    kind = image_type(version.beginning(path, 16))
    if kind is None or info.size > IMAGE_BYTES:
        told = "only images of up to 10 MB are served: PNG, JPEG, GIF and WebP"
        raise NotFoundError(f"{brief(path)!r} is not served as it is; {told}")
    with TemporaryDirectory(prefix="perago-image-") as scratch:
        found = version.bring(info, Path(scratch, "image")).read_bytes()
    if image_type(found) != kind:
        raise NotFoundError(f"{brief(path)!r} is not the image that it was a moment ago")
    return Response(found, media_type=kind)
