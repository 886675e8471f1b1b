"""Arguments that can be left out when there is only one thing they could mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from perago.errors import UsageError

if TYPE_CHECKING:
    from perago.protocol.paths import Selection
    from perago.wiring import Home

Repository = Annotated[
    str | None,
    typer.Argument(help="Repository; may be left out when there is only one.", show_default=False),
]
Branch = Annotated[str, typer.Option("--branch", "-b", help="Branch to look at.")]


def selection_of(prefix: str) -> Selection:
    """Return the part of a repository that ``--prefix`` names."""
    from perago.protocol.paths import Selection, normalise_prefix, refuse_prefix

    if problem := refuse_prefix(prefix):
        raise UsageError(f"prefix {prefix!r} {problem}")
    return Selection(normalise_prefix(prefix))


def repository_of(home: Home, given: str | None) -> str:
    """Return the repository that is meant."""
    known = sorted(home.store.repositories())
    if given:
        if given not in known:
            listed = ", ".join(known) or "none yet: 'perago run' makes one"
            raise UsageError(f"there is no repository {given!r}", remedy=f"known: {listed}")
        return given
    if len(known) == 1:
        return known[0]
    if not known:
        raise UsageError(
            f"the store in {home.path} is empty", remedy="'perago run' makes a repository"
        )
    raise UsageError("which repository?", remedy=f"name one of {', '.join(known)}")
