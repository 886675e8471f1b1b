"""The history of a branch: what was published, by whom, what it replaced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from perago.errors import NotFoundError, PeragoError
from perago.history.publications import PublicationEntry, publications, relocations
from perago.protocol.values import ChangeSet, Commit
from perago.ui.responses import html
from perago.ui.sources import PageSources

if TYPE_CHECKING:
    from perago.stores.embedded import EmbeddedStore
    from perago.stores.lakefs.store import LakeFSStore

PAGE: Final = 30
MOST_REPOSITORIES: Final = 200
MOST_BRANCHES: Final = 100
MOST_CHANGES: Final = 1000
"""So many changes of a commit are counted."""
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
    _ = sources.home  # One that is gone is not taken for an empty one.
    found = [one for store in sources.stores for one in _repositories(sources, store)]
    return html(request, "repositories.html", title="History", found=found)


def _repositories(sources: PageSources, store: str) -> list[RepositoryBranches]:
    """Ask a store; one that cannot answer takes nothing from the others."""
    try:
        names = islice(sources.repositories(store), MOST_REPOSITORIES)
        return [
            RepositoryBranches(store, name, sources.branches(store, name)[:MOST_BRANCHES])
            for name in names
        ]
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
        _Counted(store), sources.home.events, repository, branch, PAGE + 1, since
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
        branches=sources.branches(kind, repository)[:MOST_BRANCHES],
        entries=[(entry, _picture(entry)) for entry in entries],
        taken_back=[] if since else relocations(sources.home.events, repository, branch, kind),
        since=since,
        more=more,
        most=MOST_CHANGES,
    )


@dataclass(frozen=True, slots=True)
class _Counted:
    """Reads commits, and of what they changed as much as a page counts."""

    store: EmbeddedStore | LakeFSStore

    def history(self, repository: str, ref: str) -> Iterator[Commit]:
        return self.store.history(repository, ref)

    def diff(self, repository: str, left: str, right: str, root: str) -> ChangeSet:
        return self.store.diff_page(repository, left, right, root, "", MOST_CHANGES)


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
