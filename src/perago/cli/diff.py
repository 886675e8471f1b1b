"""``perago diff``: two commits compared."""

from __future__ import annotations

from typing import Annotated

import typer

from perago.cli import completion
from perago.cli.choose import Repo, StoreName, place_of, selection_of
from perago.cli.screen import AsJson, emit, plain, say_steps, short


def diff(
    left: Annotated[
        str | None,
        typer.Argument(
            help="Older commit or branch; the one before RIGHT when left out.",
            show_default=False,
            autocompletion=completion.branches,
        ),
    ] = None,
    right: Annotated[
        str,
        typer.Argument(help="Newer commit or branch.", autocompletion=completion.branches),
    ] = "main",
    repository: Repo = None,
    prefix: Annotated[str, typer.Option(help="Only paths below this directory.")] = "/",
    rows: Annotated[
        bool, typer.Option("--rows", help="Compare the schema and rows of tables, too.")
    ] = False,
    most_mb: Annotated[
        int, typer.Option("--most-mb", min=0, help="With --rows: leave out tables above this size.")
    ] = 256,
    store: StoreName = "embedded",
    as_json: AsJson = False,
) -> None:
    """List the files that differ between two versions, or what the newest commit changed.

    Says of a table whose part files differ only in their names, that it does.
    """
    from perago.app.local import home_here
    from perago.cli.tables import Versions, say_tables

    select = selection_of(prefix)
    place, name = place_of(home_here(), store, repository)
    new = place.commit(name, right)
    old = place.commit(name, left or new.parent or new.id)
    found = place.diff(name, old.id, new.id, select.root)
    versions = Versions(place, name, old.id, new.id)
    tables = list(versions.tables(found, most_mb * 1_000_000 if rows else None))
    if as_json:
        emit(
            {
                "repository": name,
                "left": old.id,
                "right": new.id,
                **found.as_json(),
                "tables": [table.as_json() for table in tables],
            }
        )
        return
    say_steps(f"[bold]{plain(name)}[/bold] {short(old.id)} .. {short(new.id)}", found)
    say_tables(tables)
