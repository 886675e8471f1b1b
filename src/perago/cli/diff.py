"""``perago diff``: two commits compared."""

from __future__ import annotations

from typing import Annotated

import typer

from perago.cli.choose import Repo, StoreName, place_of, selection_of
from perago.cli.screen import AsJson, changes, emit, plain, say, short


def diff(
    left: Annotated[str, typer.Argument(help="Older commit or branch.")],
    right: Annotated[str, typer.Argument(help="Newer commit or branch.")] = "main",
    repository: Repo = None,
    prefix: Annotated[str, typer.Option(help="Only paths below this directory.")] = "/",
    store: StoreName = "embedded",
    as_json: AsJson = False,
) -> None:
    """List the files that differ between two versions."""
    from perago.wiring import home_here

    select = selection_of(prefix)
    place, name = place_of(home_here(), store, repository)
    old, new = place.commit(name, left), place.commit(name, right)
    found = place.diff(name, old.id, new.id, select.root)
    if as_json:
        emit(
            {
                "repository": name,
                "left": old.id,
                "right": new.id,
                "added": found.added,
                "changed": found.changed,
                "removed": found.removed,
            }
        )
        return
    total = changes(len(found.added), len(found.changed), len(found.removed))
    say(f"[bold]{plain(name)}[/bold] {short(old.id)} .. {short(new.id)}  {total}")
    for sign, colour, paths in (
        ("+", "green", found.added),
        ("~", "yellow", found.changed),
        ("-", "red", found.removed),
    ):
        for path in paths:
            say(f"[{colour}]{sign}[/{colour}] {plain(path)}")
