"""``perago branch``: make, list and delete branches, on either store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from perago.cli.choose import Repo, StoreName, place_of
from perago.cli.help import Group, StyledCommand
from perago.cli.screen import AsJson, emit, plain, say, short, table
from perago.errors import UsageError

if TYPE_CHECKING:
    from perago.stores.embedded import EmbeddedStore
    from perago.stores.lakefs.branching import LakeFSBranches

app = typer.Typer(cls=Group, help="Make, list and delete branches.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Branch.", show_default=False)]


@app.command(cls=StyledCommand)
def create(
    name: Name,
    source: Annotated[
        str | None,
        typer.Option(
            "--from", help="Commit or branch to begin at; the default branch if left out."
        ),
    ] = None,
    repository: Repo = None,
    store: StoreName = "embedded",
    as_json: AsJson = False,
) -> None:
    """Make a branch at a commit or at the head of another branch."""
    from perago.stores.names import check_branch

    check_branch(name)
    _refuse_private(name)
    place, where = _open(store, repository)
    at = place.commit(where, source or place.default_branch(where)).id
    place.create_branch(where, name, at)
    if as_json:
        emit({"repository": where, "branch": name, "head": at})
    else:
        say(f"branch [bold]{plain(name)}[/bold] of {plain(where)} is made at {short(at)}")


@app.command("list", cls=StyledCommand)
def list_(repository: Repo = None, store: StoreName = "embedded", as_json: AsJson = False) -> None:
    """List the branches of a repository; private branches of attempts are left out."""
    place, where = _open(store, repository)
    default = place.default_branch(where)
    found = [each for each in place.branches(where) if not _is_private(each.name)]
    if as_json:
        rows = [{"branch": each.name, "head": each.head} for each in found]
        emit({"repository": where, "default": default, "branches": rows})
        return
    table(
        ["branch", "head", ""],
        [
            [plain(each.name), short(each.head), "default" if each.name == default else ""]
            for each in found
        ],
    )


@app.command(cls=StyledCommand)
def delete(
    name: Name,
    repository: Repo = None,
    store: StoreName = "embedded",
    as_json: AsJson = False,
) -> None:
    """Delete a branch; its commits go later, with perago gc or the server's own cleaning."""
    _refuse_private(name)
    place, where = _open(store, repository)
    if name == place.default_branch(where):
        raise UsageError(
            f"{name!r} is the default branch of {where!r}", remedy="it cannot be deleted"
        )
    head = place.head(where, name).id
    if place.dirty(where, name):
        raise UsageError(
            f"branch {name!r} of {where!r} has uncommitted changes",
            remedy="commit or reset them first",
        )
    place.delete_branch(where, name)
    if as_json:
        emit({"repository": where, "branch": name, "head": head})
    else:
        say(f"branch [bold]{plain(name)}[/bold] of {plain(where)} is deleted; it was at {head}")


def _open(store: str, repository: str | None) -> tuple[EmbeddedStore | LakeFSBranches, str]:
    from perago.app.local import home_here
    from perago.stores.embedded import EmbeddedStore

    place, name = place_of(home_here(), store, repository)
    if isinstance(place, EmbeddedStore):
        return place, name
    from perago.stores.lakefs.branching import LakeFSBranches

    return LakeFSBranches(place), name


def _is_private(name: str) -> bool:
    """Return whether attempts, or the trial of a fence, own a branch."""
    from perago.protocol.names import PRIVATE

    return name.startswith(PRIVATE)


def _refuse_private(name: str) -> None:
    if _is_private(name):
        raise UsageError(
            f"{name!r} is a private branch of an attempt",
            remedy="choose another name; 'perago gc' removes those that are left behind",
        )
