"""``perago repo``: repositories on lakeFS that are ready for Perago."""

from __future__ import annotations

from typing import Annotated

import typer

from perago.cli.screen import AsJson, emit, plain, say, short

app = typer.Typer(help="Prepare repositories on lakeFS.", no_args_is_help=True)


@app.callback()
def _repo() -> None:
    """Prepare repositories on lakeFS."""


@app.command()
def init(
    name: Annotated[str, typer.Argument(help="Repository: small letters, digits and '-'.")],
    storage: Annotated[
        str | None,
        typer.Option(help="Where lakeFS keeps its blocks; the server's usual place if left out."),
    ] = None,
    branch: Annotated[str, typer.Option("--branch", "-b", help="Default branch.")] = "main",
    as_json: AsJson = False,
) -> None:
    """Make a repository on the configured lakeFS, or say that it is there already."""
    from perago.errors import AlreadyExistsError
    from perago.stores.lakefs.admin import create_repository
    from perago.wiring import lakefs_here

    store = lakefs_here()
    try:
        create_repository(store.client, name, storage, branch)
        made = True
    except AlreadyExistsError:
        made = False
    head = store.head(name, branch)
    store.close()
    if as_json:
        emit({"repository": name, "branch": branch, "head": head.id, "made": made})
        return
    say(f"repository [bold]{plain(name)}[/bold] {'is made' if made else 'was there already'},")
    say(f"its branch {plain(branch)} is at {short(head.id)}")
    say(f"\n[dim]try:[/dim] perago run WORKFLOW MODULE --store lakefs --repo {plain(name)}")
