"""``perago checkout``: a version as plain files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perago.cli.choose import repository_of, selection_of
from perago.cli.screen import AsJson, emit, say, short, size


def checkout(
    directory: Annotated[Path, typer.Argument(help="New or empty directory to fill.")],
    ref: Annotated[str, typer.Argument(help="Commit or branch.")] = "main",
    repository: Annotated[
        str | None, typer.Option("--repo", "-r", help="Repository, when there are several.")
    ] = None,
    prefix: Annotated[str, typer.Option(help="Only this directory of the repository.")] = "/",
    as_json: AsJson = False,
) -> None:
    """Copy one version to a directory; the copies are yours, the store stays as it is."""
    from perago.cli.progress import bytes_bar
    from perago.errors import UsageError
    from perago.ports import Fetch
    from perago.protocol.paths import plan_download
    from perago.wiring import home_here

    select = selection_of(prefix)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(f"{directory} is not empty", remedy="name a new directory")
    home = home_here().existing()
    name = repository_of(home, repository)
    commit = home.store.commit(name, ref)
    manifest = plan_download(select, home.store.listing(name, commit.id, select.root))
    total = sum(entry.size for entry in manifest.values())
    directory.mkdir(parents=True, exist_ok=True)
    with bytes_bar(f"checkout {short(commit.id)}", total) as advance:
        wanted = [
            Fetch(select.key(path), entry, directory / path) for path, entry in manifest.items()
        ]
        home.store.fetch(name, commit.id, wanted, advance)
    if as_json:
        emit({"commit": commit.id, "files": len(manifest), "bytes": total, "to": str(directory)})
    else:
        say(f"{len(manifest)} files, {size(total)}, of {short(commit.id)} are in {directory}")
