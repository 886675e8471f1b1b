"""``perago init``: a small working project to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perago.cli.screen import AsJson, emit, plain, say


def init(
    directory: Annotated[Path, typer.Argument(help="New or empty directory.")] = Path(),
    as_json: AsJson = False,
) -> None:
    """Write tasks, a workflow, data and tests that work as they are."""
    from importlib.resources import as_file, files
    from shutil import copytree, ignore_patterns

    from perago.errors import UsageError

    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(f"{directory} is not empty", remedy="name a new directory")
    with as_file(files("perago") / "template") as template:
        try:
            copytree(template, directory, dirs_exist_ok=True, ignore=ignore_patterns("__pycache__"))
        except OSError as error:
            raise UsageError(
                f"{directory} cannot be written: {error}", remedy="choose another place"
            ) from None
    (directory / ".gitignore").write_text(".perago/\n__pycache__/\n")
    written = sorted(str(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file())
    if as_json:
        emit({"directory": str(directory), "files": written})
        return
    say(f"[green]ready[/green] in {plain(directory)}: {plain(', '.join(written))}")
    say("\nwhat to try next")
    if directory != Path():
        say(f"  [bold]cd {plain(directory)}[/bold]")
    say("  [bold]perago run workflow.json tasks --from data[/bold]")
    say("  [bold]perago log[/bold]")
