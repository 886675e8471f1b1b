"""The files below a directory, as keys."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from perago.errors import UnpublishableFileError, UsageError


def files_below(directory: Path) -> Iterator[tuple[str, Path]]:
    """Yield key and path of every plain file, sorted; links and special files are refused."""
    if not directory.is_dir():
        raise UsageError(
            f"{directory} is not a directory", remedy="name a directory with the files to import"
        )
    yield from _walk(directory, "")


def _walk(directory: Path, above: str) -> Iterator[tuple[str, Path]]:
    with os.scandir(directory) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        key, path = above + entry.name, directory / entry.name
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(path, key + "/")
        elif entry.is_file(follow_symlinks=False):
            yield key, path
        else:
            raise UnpublishableFileError(
                f"{str(path)!a} is a link or a special file",
                remedy="replace it by a plain file, or leave it out",
            )
