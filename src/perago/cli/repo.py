"""``perago repo``: repositories on lakeFS that are ready for Perago."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from perago.cli.help import Group, StyledCommand
from perago.cli.screen import AsJson, emit, plain, say, short

app = typer.Typer(cls=Group, help="Prepare repositories on lakeFS.", no_args_is_help=True)


class Fence(StrEnum):
    """Which fence a branch is made ready for; the others need nothing."""

    HEAD = "head"
    HARD = "hard"


@app.callback()
def _repo() -> None:
    """Prepare repositories on lakeFS."""


@app.command(cls=StyledCommand)
def init(
    name: Annotated[str, typer.Argument(help="Repository: small letters, digits and '-'.")],
    storage: Annotated[
        str | None,
        typer.Option(help="Where lakeFS keeps its blocks; the server's default if left out."),
    ] = None,
    branch: Annotated[
        str,
        typer.Option("--branch", "-b", help="Default branch; with --fence hard, the one to fence."),
    ] = "main",
    fence: Annotated[
        Fence, typer.Option(help="With 'hard', put the action of the hard fence on the branch.")
    ] = Fence.HEAD,
    as_json: AsJson = False,
) -> None:
    """Make a repository on the configured lakeFS, or say that it is there already.

    With --fence hard it commits one file, _lakefs_actions/perago_fence.yaml, to the branch, and
    tries on a scratch branch that it holds. Other actions are left alone.
    """
    from perago.app.local import lakefs_here
    from perago.errors import AlreadyExistsError
    from perago.stores.lakefs.admin import create_repository
    from perago.stores.lakefs.installing import install_fence

    store = lakefs_here()
    try:
        create_repository(store.client, name, storage, branch)
        made = True
    except AlreadyExistsError:
        made = False
    fenced = install_fence(store, name, branch) if fence is Fence.HARD else None
    head = store.head(name, branch)
    store.close()
    if as_json:
        told = fenced and {"action": fenced.deed.name.lower(), "branches": fenced.branches}
        emit({"repository": name, "branch": branch, "head": head.id, "made": made, "fence": told})
        return
    say(f"repository [bold]{plain(name)}[/bold] {'is made' if made else 'was there already'},")
    say(f"its branch {plain(branch)} is at {short(head.id)}")
    if fenced:
        say(f"_lakefs_actions/perago_fence.yaml {fenced.deed};")
        say(f"fence hard was tried and holds on {plain(', '.join(fenced.branches))}")
    say(f"\n[dim]try:[/dim] perago run WORKFLOW MODULE --store lakefs --repo {plain(name)}")
