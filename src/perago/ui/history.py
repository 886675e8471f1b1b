"""The history of a branch: what was published, by whom, what it replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from perago.errors import NotFoundError, PeragoError
from perago.history.publications import PublicationEntry, publications, relocations
from perago.ui.responses import html
from perago.ui.sources import PageSources

PAGE: Final = 30
MOST_REPOSITORIES: Final = 200
_WIDTH, _HEIGHT, _LINE, _SIDE = 44, 34, 12, 32


@dataclass(frozen=True, slots=True)
class RepositoryBranches:
    """A repository and the branches that a person may look at."""

    store: str
    name: str
    branches: Sequence[str]
    problem: str = ""


def repositories(request: Request) -> Response:
    """List what has a history."""
    sources: PageSources = request.app.state.sources
    found = [one for store in sources.stores for one in _repositories(sources, store)]
    return html(request, "repositories.html", title="History", found=found)


def _repositories(sources: PageSources, store: str) -> list[RepositoryBranches]:
    """Ask a store; one that cannot answer takes nothing from the others."""
    try:
        names = islice(sources.repositories(store), MOST_REPOSITORIES)
        return [RepositoryBranches(store, name, sources.branches(store, name)) for name in names]
    except PeragoError as error:
        return [RepositoryBranches(store, "", (), error.message)]


def history(request: Request) -> Response:
    """Show the commits of a branch, newest first, a page of them."""
    sources: PageSources = request.app.state.sources
    kind = request.path_params["store"]
    repository = request.path_params["repository"]
    branch = request.query_params.get("branch", "main")
    since = request.query_params.get("since", "")
    store = sources.store(kind)
    entries = publications(
        store, sources.home.events, repository, branch, limit=PAGE + 1, since=since
    )
    if not entries:
        raise NotFoundError(f"{repository}/{branch} has no commit")
    more = entries[PAGE].commit.id if len(entries) > PAGE else ""
    entries = entries[:PAGE]
    return html(
        request,
        "history.html",
        title=f"{repository}/{branch}",
        store=kind,
        repository=repository,
        branch=branch,
        branches=sources.branches(kind, repository),
        entries=[(entry, _picture(entry)) for entry in entries],
        taken_back=[] if since else relocations(sources.home.events, repository, branch, kind),
        since=since,
        more=more,
    )


def _picture(entry: PublicationEntry) -> Markup:
    """Draw one commit on the line of its branch; what it replaced hangs beside the line."""
    marks = [Markup('<path class="edge" d="M{} 0V{}"/>').format(_LINE, _HEIGHT)]
    if not entry.commit.parents:
        marks = [Markup('<path class="edge" d="M{} 0V{}"/>').format(_LINE, _HEIGHT // 2)]
    if entry.replaced:
        curve = f"M{_LINE} {_HEIGHT // 2}Q{_SIDE} {_HEIGHT // 2} {_SIDE} {_HEIGHT - 8}"
        marks.append(Markup('<path class="edge gone" d="{}"/>').format(curve))
        marks.append(
            Markup('<circle class="gone" cx="{}" cy="{}" r="4"/>').format(_SIDE, _HEIGHT - 8)
        )
    elif len(entry.commit.parents) > 1 and not entry.replaced:
        curve = f"M{_LINE} {_HEIGHT // 2}Q{_SIDE} {_HEIGHT // 2} {_SIDE} {_HEIGHT}"
        marks.append(Markup('<path class="edge" d="{}"/>').format(curve))
    ours = "dot published" if entry.step else "dot"
    marks.append(
        Markup('<circle class="{}" cx="{}" cy="{}" r="5"/>').format(ours, _LINE, _HEIGHT // 2)
    )
    return Markup('<svg class="commit" viewBox="0 0 {} {}" aria-hidden="true">{}</svg>').format(
        _WIDTH, _HEIGHT, Markup("").join(marks)
    )
