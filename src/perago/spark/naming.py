"""Renames the part files that Spark wrote, so that equal contents have equal names (X13)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Lock

from perago.filesystem import trees
from perago.protocol.parts import can_be_named, new_names, part_of
from perago.spark.footers import settle
from perago.transfer import parallel

_RENAMING = Lock()


def files_below(root: Path, path: str) -> frozenset[str]:
    """Return the files below a path; none when it cannot be read. No link is followed (V6)."""
    with suppress(OSError), trees.opened(root) as whole, trees.beneath(whole, path) as top:
        return frozenset(name for name, _ in trees.walk(top))
    return frozenset()


def rename_parts(
    root: Path, path: str, before: Collection[str] = (), salt: str = ""
) -> Sequence[str]:
    """Rename the part files below a path that were not there ``before``; return their new names.

    Where it cannot be done, files keep the names that Spark gave them: they are as good, only not
    the same the next time.
    """
    renamed: list[str] = []
    with ExitStack() as stack:
        stack.enter_context(suppress(OSError))
        # Threads of a body may append equal rows to one table at the same time.
        stack.enter_context(_RENAMING)
        top = stack.enter_context(trees.beneath(stack.enter_context(trees.opened(root)), path))
        sizes = {name: found.st_size for name, found in trees.walk(top)}
        if can_be_named(sizes):
            new = [name for name in sizes if name not in before and part_of(name)]
            for name in new:
                _settle(top, name)
            for old, name in new_names(_digests(top, new, sizes), sizes.keys(), salt).items():
                _rename(top, old, name)
                renamed.append(name)
    return renamed


def _settle(top: int, name: str) -> None:
    """Make the bytes of a Parquet file those of every JVM; a checksum file of Hadoop's goes."""
    if not name.endswith(".parquet"):
        return
    folder, _, last = name.rpartition("/")
    with suppress(OSError), trees.beneath(top, folder) as directory:
        fd = os.open(last, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        try:
            with suppress(FileNotFoundError):
                os.unlink(f".{last}.crc", dir_fd=directory)
            settle(fd)
        finally:
            os.close(fd)


def _digests(top: int, names: Sequence[str], sizes: Mapping[str, int]) -> Mapping[str, str]:
    """Read files, big ones beside each other."""

    def digest(name: str, _: object) -> str:
        with os.fdopen(trees.open_beneath(top, name), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    threads = parallel.local_threads(len(names), sum(sizes[name] for name in names))
    found = parallel.each(names, digest, lambda _: None, threads=threads)
    return dict(zip(names, found, strict=True))


def _rename(top: int, old: str, new: str) -> None:
    """Rename a file within its directory."""
    folder, _, name = old.rpartition("/")
    with trees.beneath(top, folder) as directory:
        to = new.rpartition("/")[2]
        os.rename(name, to, src_dir_fd=directory, dst_dir_fd=directory)
