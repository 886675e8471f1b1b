"""What a shell completes: runs, repositories and branches, of the embedded store or of lakeFS.

Completion never fails and never makes anything: where there is nothing to offer, it offers nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import redirect_stderr, suppress
from io import StringIO
from itertools import islice
from typing import TYPE_CHECKING, Final

import typer

if TYPE_CHECKING:
    from perago.app.local import Home
    from perago.stores.lakefs.client import LakeFSClient

_RECENT: Final = 50
_MOST: Final = 200
_PATIENCE_SECONDS: Final = 2.0
"""How long a prompt waits for a server."""
Offered = list[tuple[str, str]]
"""Words with what they mean; a shell that shows no explanations leaves them out."""


def runs(incomplete: str) -> Offered:
    """Offer recent runs, newest first."""
    return _offered(incomplete, _runs)


def repositories(context: typer.Context, incomplete: str) -> Offered:
    """Offer the repositories of the store that is named."""
    on_lakefs = _on_lakefs(context)

    def find(home: Home) -> Offered:
        if on_lakefs:
            return _asked(lambda client: _named(_lakefs_repositories(client)))
        return _named(_embedded_repositories(home))

    return _offered(incomplete, find)


def branches(context: typer.Context, incomplete: str) -> Offered:
    """Offer the branches of the repository that is named, or of all."""
    on_lakefs = _on_lakefs(context)
    named = _repository(context)

    def find(home: Home) -> Offered:
        if on_lakefs:
            return _asked(lambda client: _lakefs_branches(client, named))
        known = [named] if named else _embedded_repositories(home)
        found = {branch.name: name for name in known for branch in home.store.branches(name)}
        return list(found.items())

    return _offered(incomplete, find)


def runs_and_branches(context: typer.Context, incomplete: str) -> Offered:
    """Offer what ``perago inspect`` takes and people can know."""
    return branches(context, incomplete) + runs(incomplete)


_NAMES: Final = ("repository", "repo")
"""The parameters that name a repository."""


def _repository(context: typer.Context) -> str | None:
    """Return the repository that the line names so far."""
    named = next((str(context.params[name]) for name in _NAMES if context.params.get(name)), None)
    arguments = [one.name for one in context.command.params if one.param_type_name == "argument"]
    if named is None and context.args and arguments[:1] == ["repository"]:
        # An option that still waits for its value keeps click from reading what stands before it.
        return context.args[0]
    return named


def _on_lakefs(context: typer.Context) -> bool:
    return context.params.get("store") == "lakefs"


def _named(repositories: list[str]) -> Offered:
    return [(name, "repository") for name in repositories]


def _runs(home: Home) -> Offered:
    if not home.path.is_dir():
        return []
    return [
        (run.id, f"{run.workflow.get('name')} {run.status}") for run in home.state.runs(_RECENT)
    ]


def _embedded_repositories(home: Home) -> list[str]:
    return list(home.store.repositories()) if home.path.is_dir() else []


def _lakefs_repositories(client: LakeFSClient) -> list[str]:
    from perago.stores.lakefs.admin import repositories as listed

    return list(islice(listed(client), _MOST))


def _lakefs_branches(client: LakeFSClient, repository: str | None) -> Offered:
    from perago.stores.lakefs.admin import visible_branches

    if repository is None:
        known = _lakefs_repositories(client)
        if len(known) != 1:
            return []
        repository = known[0]
    found = islice(visible_branches(client, repository), _MOST)
    return [(name, repository) for name, _ in found]


def _asked(find: Callable[[LakeFSClient], Offered]) -> Offered:
    """Ask lakeFS, for as long as a prompt may wait."""
    from perago.app.local import lakefs_here
    from perago.stores.lakefs import admin  # noqa: F401 - imported first: the server is timed

    client = lakefs_here().client
    words: Offered = []

    def ask() -> None:
        with suppress(Exception):
            words.extend(find(client))

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_PATIENCE_SECONDS)
    return list(words)


def _offered(incomplete: str, find: Callable[[Home], Offered]) -> Offered:
    """Look into the home of this directory; an error would be printed into a prompt."""
    from perago.app.local import home_here

    words: Offered = []
    with redirect_stderr(StringIO()), suppress(Exception):
        words = find(home_here())
    return [pair for pair in words if pair[0].startswith(incomplete)]
