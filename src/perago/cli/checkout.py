"""``perago checkout``: a version as plain files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perago.cli import completion
from perago.cli.choose import Engine, repository_of, selection_of, wants_spark
from perago.cli.screen import AsJson, emit, plain, say, short, size

if TYPE_CHECKING:
    from perago.protocol.paths import Selection
    from perago.settings import Settings
    from perago.stores.embedded import EmbeddedStore
    from perago.stores.spans import Listed


def checkout(
    directory: Annotated[Path, typer.Argument(help="New or empty directory to fill.")],
    ref: Annotated[
        str, typer.Argument(help="Commit or branch.", autocompletion=completion.branches)
    ] = "main",
    repository: Annotated[
        str | None,
        typer.Option(
            "--repo",
            "-r",
            help="Repository, when there are several.",
            autocompletion=completion.repositories,
        ),
    ] = None,
    prefix: Annotated[str, typer.Option(help="Only this directory of the repository.")] = "/",
    engine: Engine = "auto",
    as_json: AsJson = False,
) -> None:
    """Copy one version to a directory; the copies are yours, the store stays as it is."""
    from perago.stores.spans import Listed
    from perago.transfer.filling import refuse_used
    from perago.wiring import home_of, settings_here

    select, settings = selection_of(prefix), settings_here()
    refuse_used(directory)
    home = home_of(settings).existing()
    name = repository_of(home, repository)
    commit = home.store.commit(name, ref)
    listed = Listed(home.store, name, commit.id, select.root)
    by_spark = wants_spark(engine, listed, settings)
    if by_spark:
        files, total = _by_spark(listed, select, settings, directory)
    else:
        files, total = _by_threads(listed, home.store, select, directory)
    if as_json:
        emit({"commit": commit.id, "files": files, "bytes": total, "to": str(directory)})
    else:
        say(f"{files} files, {size(total)}, of {short(commit.id)} are in {plain(directory)}")


def _by_threads(
    listed: Listed, store: EmbeddedStore, select: Selection, directory: Path
) -> tuple[int, int]:
    from perago.cli.progress import bytes_bar
    from perago.ports import Fetch
    from perago.protocol.paths import plan_download
    from perago.transfer.filling import filling, tree_of

    name, commit = listed.repository, listed.commit
    manifest = plan_download(select, store.listing(name, commit, select.root))
    total = sum(entry.size for entry in manifest.values())
    with bytes_bar(f"checkout {short(commit)}", total) as advance, filling(directory) as draft:
        tree = tree_of(draft)
        wanted = [Fetch(select.key(path), entry, tree / path) for path, entry in manifest.items()]
        store.fetch(name, commit, wanted, advance)
    return len(manifest), total


def _by_spark(
    listed: Listed, select: Selection, settings: Settings, directory: Path
) -> tuple[int, int]:
    from perago.cli.progress import share_bar
    from perago.spark import jobs
    from perago.spark.origin import Origin

    origin = Origin(str(settings.home.absolute()), str(Path.cwd()))
    with jobs.session(settings.spark) as spark, share_bar("parts") as tell:
        from perago.spark import copying, prefixes

        found = prefixes.objects(spark, origin, listed.repository, listed.commit, listed.root)
        to = str(directory.absolute())
        work = copying.Copy(origin, listed.repository, listed.commit, select, to)
        with jobs.watched(spark, tell):
            return copying.copy(found, work, jobs.parts(spark))
