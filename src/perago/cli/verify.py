"""``perago verify``: every object of a version read again."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perago.cli import completion
from perago.cli.choose import (
    Engine,
    Repo,
    Repository,
    StoreName,
    named_once,
    place_of,
    selection_of,
    wants_spark,
)
from perago.cli.exits import FAILED
from perago.cli.screen import AsJson, emit, plain, say, short
from perago.protocol.printable import size

if TYPE_CHECKING:
    from perago.settings import Settings
    from perago.spark.origin import Origin
    from perago.stores.key_ranges import Listed
    from perago.stores.verifying import Verified

_SHOWN = 20


def verify(
    repository: Repository = None,
    ref: Annotated[
        str, typer.Argument(help="Commit or branch.", autocompletion=completion.branches)
    ] = "main",
    prefix: Annotated[str, typer.Option(help="Only this directory of the repository.")] = "/",
    store: StoreName = "embedded",
    engine: Engine = "auto",
    repo: Repo = None,
    as_json: AsJson = False,
) -> None:
    """Read every object of a version again and compare its size and checksum with the listing."""
    from perago.app.local import home_of, settings_here
    from perago.cli.seed import chosen_store
    from perago.spark.origin import Origin
    from perago.stores.key_ranges import Listed

    select, kind, settings = selection_of(prefix), chosen_store(store), settings_here()
    origin = Origin(str(settings.home.absolute()), str(Path.cwd()), kind)
    _, name = place_of(home_of(settings), kind, named_once(repository, repo))
    with origin.open() as opened:
        commit = opened.commit(name, ref)
        listed = Listed(opened, name, commit.id, select.root)
        by_spark = wants_spark(engine, listed, settings)
        found = _by_spark(listed, origin, settings) if by_spark else _by_threads(listed)
    if as_json:
        emit(_plain(name, commit.id, found, "spark" if by_spark else "threads"))
    else:
        _show(name, commit.id, found)
    if found.damaged:
        sys.exit(FAILED)


def _by_threads(listed: Listed) -> Verified:
    from perago.cli.progress import count_bar
    from perago.stores.verifying import verify as read_again

    with count_bar("objects") as advance, tempfile.TemporaryDirectory(prefix="perago-") as scratch:
        return read_again(listed, Path(scratch), lambda objects, _: advance(objects))


def _by_spark(listed: Listed, origin: Origin, settings: Settings) -> Verified:
    from perago.cli.progress import share_bar
    from perago.spark import jobs

    with jobs.session(settings.spark) as spark, share_bar("parts") as tell:
        from perago.spark import prefixes

        found = prefixes.objects(spark, origin, listed.repository, listed.commit, listed.root)
        check = prefixes.Check(origin, listed.repository, listed.commit)
        with jobs.watched(spark, tell):
            return prefixes.verify(found, check, jobs.parts(spark))


def _plain(repository: str, commit: str, found: Verified, engine: str) -> dict[str, object]:
    return {
        "repository": repository,
        "commit": commit,
        "engine": engine,
        "objects": found.objects,
        "bytes": found.bytes,
        "unchecked": found.unchecked,
        "missing": found.missing,
        "corrupt": found.corrupt,
        "damaged": [
            {"key": each.key, "problem": each.problem, "why": each.why} for each in found.named
        ],
    }


def _show(repository: str, commit: str, found: Verified) -> None:
    for each in found.named[:_SHOWN]:
        say(f"[red]{plain(each.problem)}[/red] {plain(each.key)}  [dim]{plain(each.why)}[/dim]")
    if (rest := found.damaged - min(_SHOWN, len(found.named))) > 0:
        say(f"[dim]and {rest:,} more; --json names the first thousand[/dim]")
    counted = (
        f"{found.objects:,} objects, {size(found.bytes)}, of {plain(repository)} {short(commit)}"
    )
    if found.unchecked:
        counted += f"; of {found.unchecked:,} the store gives no checksum, their size is right"
    if found.damaged:
        say(f"[red]{found.missing:,} missing, {found.corrupt:,} corrupt[/red] of {counted}")
    else:
        say(f"[green]all as stored[/green]: {counted}")
