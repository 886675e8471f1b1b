"""``perago gc``: what dead attempts left on this machine, and versions past their retention."""

from __future__ import annotations

from typing import Annotated

import typer

from perago.cli.screen import AsJson, emit, say, size


def gc(
    delete: Annotated[
        bool, typer.Option("--delete", help="Really delete; without it, only show.")
    ] = False,
    older_than: Annotated[
        str, typer.Option(help="Keep replaced versions at least this long, such as 12h or 7d.")
    ] = "7d",
    as_json: AsJson = False,
) -> None:
    """Remove orphaned directories, staging branches of ended attempts, and unreachable content."""
    from perago.errors import UsageError
    from perago.settings import parse_duration
    from perago.tidy import drop_branches, lakefs_orphans, orphaned_branches, sweep_rooms
    from perago.wiring import home_here, lakefs_here, settings_here

    try:
        age = parse_duration(older_than)
    except ValueError as error:
        raise UsageError(f"--older-than {older_than!r}", remedy=str(error)) from None
    home = home_here().existing()
    rooms = sweep_rooms(home, settings_here().gc_ttl_seconds, dry_run=not delete)
    branches = orphaned_branches(home)
    if delete:
        drop_branches(home.store, branches)
    if any(run.store == "lakefs" for run in home.state.runs(limit=1_000_000)):
        store = lakefs_here()
        found = lakefs_orphans(home, store)
        if delete:
            drop_branches(store, found)
        branches += found
        store.close()
    freed = home.store.collect(age, dry_run=not delete)
    gone = [str(found.path) for found in rooms if found.removed]
    if as_json:
        emit(
            {
                "deleted": delete,
                "directories": gone,
                "branches": [f"{repository}/{branch}" for repository, branch in branches],
                "objects": freed.objects,
                "commits": freed.commits,
                "bytes": freed.bytes_freed,
            }
        )
        return
    verb = "deleted" if delete else "would delete"
    say(f"{verb} attempt directories: {len(gone)}, staging branches: {len(branches)}")
    say(
        f"{verb} {freed.commits} unreachable commits and {freed.objects} objects, "
        f"{size(freed.bytes_freed)}"
    )
    if not delete:
        say("[dim]nothing was deleted; add --delete to do it[/dim]")
