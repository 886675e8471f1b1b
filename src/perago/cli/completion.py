"""What a shell completes: runs, repositories and branches of the embedded store.

Completion never fails and never makes anything: where there is nothing to offer, it offers nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import redirect_stderr
from io import StringIO
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from perago.wiring import Home

_RECENT = 50
Offered = list[tuple[str, str]]
"""Words with what they mean; a shell that shows no explanations leaves them out."""


def runs(incomplete: str) -> Offered:
    """Offer recent runs, newest first."""
    return _offered(incomplete, _runs)


def repositories(incomplete: str) -> Offered:
    """Offer the repositories of the embedded store."""
    return _offered(
        incomplete, lambda home: [(name, "repository") for name in home.store.repositories()]
    )


def branches(context: typer.Context, incomplete: str) -> Offered:
    """Offer the branches of the repository that is named, or of all."""
    named = context.params.get("repository")

    def find(home: Home) -> Offered:
        known = [str(named)] if named else home.store.repositories()
        found = {branch.name: name for name in known for branch in home.store.branches(name)}
        return list(found.items())

    return _offered(incomplete, find)


def runs_and_branches(context: typer.Context, incomplete: str) -> Offered:
    """Offer what ``perago inspect`` takes and people can know."""
    return branches(context, incomplete) + runs(incomplete)


def _runs(home: Home) -> Offered:
    return [
        (run.id, f"{run.workflow.get('name')} {run.status}") for run in home.state.runs(_RECENT)
    ]


def _offered(incomplete: str, find: Callable[[Home], Offered]) -> Offered:
    """Look into the home of this directory, if there is one."""
    from perago.wiring import home_here

    try:
        home = home_here()
        with redirect_stderr(StringIO()):
            words = find(home) if home.path.is_dir() else []
    except Exception:  # noqa: BLE001 - an error would be printed into somebody's prompt
        return []
    return [pair for pair in words if pair[0].startswith(incomplete)]
