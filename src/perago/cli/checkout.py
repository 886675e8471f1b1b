"""``perago checkout``: a version as plain files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perago.cli import completion
from perago.cli.choose import Engine, Repo, StoreName, place_of, selection_of, wants_spark
from perago.cli.screen import AsJson, emit, plain, say, short
from perago.protocol.printable import size

if TYPE_CHECKING:
    from perago.ports import Store
    from perago.protocol.paths import Selection
    from perago.settings import Settings
    from perago.spark.origin import Origin
    from perago.stores.key_ranges import Listed


def checkout(
    directory: Annotated[Path, typer.Argument(help="New or empty directory to fill.")],
    ref: Annotated[
        str, typer.Argument(help="Commit or branch.", autocompletion=completion.branches)
    ] = "main",
    repository: Repo = None,
    prefix: Annotated[str, typer.Option(help="Only this directory of the repository.")] = "/",
    store: StoreName = "embedded",
    engine: Engine = "auto",
    as_json: AsJson = False,
) -> None:
    """Copy one version to a directory; the copies are yours, the store stays as it is."""
    from perago.app.local import home_of, settings_here
    from perago.spark.origin import Origin
    from perago.stores.key_ranges import Listed
    from perago.transfer.filling import refuse_used

    select, settings = selection_of(prefix), settings_here()
    refuse_used(directory)
    place, name = place_of(home_of(settings), store, repository)
    commit = place.commit(name, ref)
    listed = Listed(place, name, commit.id, select.root)
    by_spark = wants_spark(engine, listed, settings)
    if by_spark:
        origin = Origin(str(settings.home.absolute()), str(Path.cwd()), store)
        files, total = _by_spark(listed, select, settings, directory, origin)
    else:
        files, total = _by_threads(listed, place, select, directory)
    if as_json:
        emit({"commit": commit.id, "files": files, "bytes": total, "to": str(directory)})
    else:
        say(f"{files} files, {size(total)}, of {short(commit.id)} are in {plain(directory)}")


def _by_threads(
    listed: Listed, store: Store, select: Selection, directory: Path
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
    listed: Listed, select: Selection, settings: Settings, directory: Path, origin: Origin
) -> tuple[int, int]:
    from perago.cli.progress import share_bar
    from perago.spark import jobs

    with jobs.session(settings.spark) as spark, share_bar("parts") as tell:
        from perago.spark import copying, prefixes

        found = prefixes.objects(spark, origin, listed.repository, listed.commit, listed.root)
        to = str(directory.absolute())
        work = copying.Copy(origin, listed.repository, listed.commit, select, to)
        with jobs.watched(spark, tell):
            return copying.copy(found, work, jobs.parts(spark))
