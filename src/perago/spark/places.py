"""Where Spark finds the tables of a workspace: in the attempt directory, or in the store itself."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path, PurePath, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Protocol

from perago.data.files import find, is_data, kind_of, partition_of
from perago.errors import UsageError
from perago.filesystem import trees
from perago.ports import InPlace
from perago.protocol.parts import PLAIN_FORMATS
from perago.protocol.spark import is_left_by_spark, is_leftover
from perago.spark.naming import files_below, rename_parts

GLOB = re.compile(r"[*?\[\]{}]")


@dataclass(frozen=True, slots=True)
class Stored:
    """A table as Spark reads it; ``problem`` says why it is none."""

    address: str
    format: str
    problem: str = ""
    partitions: tuple[str, ...] = ()
    """The columns that its directories name."""
    first: str = ""
    """The address of one of its files, if it has partitions."""


@dataclass(frozen=True, slots=True)
class SaveMode:
    """What becomes of a table that is there already; maybe only of the partitions written."""

    mode: str
    partitions: bool = False
    format: str = "parquet"

    @property
    def has_names(self) -> bool:
        """Return whether the names of its files are free to choose: nothing else mentions them."""
        return self.format in PLAIN_FORMATS


@dataclass(frozen=True, slots=True)
class AppendSalts:
    """What keeps rows that are appended twice in two files, however equal they are.

    A retry of the step makes the same ones again.
    """

    step: str = ""
    _counts: defaultdict[str, Iterator[int]] = field(default_factory=lambda: defaultdict(count))

    def of(self, path: str, how: SaveMode, base: str = "") -> str:
        """Return the salt of the next write to a path; a table that is replaced has none."""
        if how.mode != "append":
            return ""
        return "\0".join((self.step, base, path, str(next(self._counts[path]))))


Write = Callable[[str, str], None]
"""Writes a table: in a save mode, to an address."""


class TablePlace(Protocol):
    """Paths are those of the workspace, checked already."""

    def source(self, path: str) -> str:
        """Return where to read a path."""

    def target(self, path: str) -> str:
        """Return where to write a path."""

    def paths(self, path: str) -> Sequence[str]:
        """List the files at a path and below it, as they are now."""

    def table(self, path: str) -> Stored | None:
        """Find a table; None when there is no file."""

    def save(self, path: str, how: SaveMode, write: Write) -> bool:
        """Have a table written, where and in which mode this place can take it.

        True: files that Spark may have seen have other names now.
        """

    def scrub(self) -> None:
        """Remove what Spark left beside data."""


@dataclass(frozen=True, slots=True)
class LocalPlace:
    """The attempt directory."""

    root: Path
    before: Mapping[str, object]
    dropped: Callable[[Sequence[str]], None] = lambda _: None
    """Told what was removed."""
    salts: AppendSalts = field(default_factory=AppendSalts)

    def source(self, path: str) -> str:
        """Read and write at the same place."""
        return self.target(path)

    def target(self, path: str) -> str:
        """Name it for Hadoop, whose paths are not percent-encoded: no ``as_uri()``."""
        return f"file://{self.root.absolute()}/{path}".removesuffix("/")

    def paths(self, path: str) -> Sequence[str]:
        """Walk the directory."""
        local = self.root / path
        found = [local] if local.is_file() else local.rglob("*")
        return sorted(str(file.relative_to(self.root)) for file in found if file.is_file())

    def table(self, path: str) -> Stored | None:
        """Look at names, and at the headers of CSV files."""
        files = find(self.root, path)
        if files is None:
            return None
        first, address = files.paths[0].relative_to(files.root), self.target(path)
        names = tuple(name for name, _ in partition_of(first) or ())
        return Stored(address, files.format, files.problem, names, f"{address}/{first}")

    def save(self, path: str, how: SaveMode, write: Write) -> bool:
        """Leave it to Spark, then name what is new by its content."""
        before = files_below(self.root, path)
        write(how.mode, self.target(path))
        if not how.has_names:
            return False
        return bool(rename_parts(self.root, path, before, self.salts.of(path, how)))

    def scrub(self) -> None:
        """Remove leftovers, unless the input had them (then they are content)."""
        gone: list[str] = []
        with suppress(OSError), trees.opened(self.root) as top:
            pending = [""]
            while pending:
                base = pending.pop()
                with suppress(OSError), trees.beneath(top, base.rstrip("/")) as directory:
                    pending += self._scrub(directory, base, gone)
        if gone:
            self.dropped(gone)

    def _scrub(self, directory: int, base: str, gone: list[str]) -> Iterator[str]:
        """Scrub one open directory, and name those in it that stay; no link is followed (V6)."""
        with os.scandir(directory) as found:
            entries = list(found)
        for entry in entries:
            path = base + entry.name
            if entry.is_dir(follow_symlinks=False):
                if is_leftover(f"{path}/") and not self._had(f"{path}/"):
                    with suppress(OSError):
                        trees.remove(directory, entry.name)
                        gone.append(f"{path}/")
                else:
                    yield f"{path}/"
            elif path not in self.before and _is_left(directory, entry, path):
                with suppress(OSError):
                    os.unlink(entry.name, dir_fd=directory)
                    gone.append(path)

    def _had(self, folder: str) -> bool:
        return any(path.startswith(folder) for path in self.before)


@dataclass(frozen=True, slots=True)
class DirectPlace:
    """The store itself: what the attempt wrote is on its branch, the rest is read from A."""

    stored: InPlace

    def source(self, path: str) -> str:
        """Read from A, which nobody can change, until the attempt itself has changed the path."""
        fixed = path
        if pattern := GLOB.search(path):
            fixed = path[: pattern.start()].rpartition("/")[0]
        if self.stored.target is not None and self.stored.touched(fixed):
            return self.target(path)
        return _address(self.stored.source, path)

    def target(self, path: str) -> str:
        """Write on the staging branch."""
        if self.stored.target is None:
            raise UsageError(
                f"write to {path!r}: the task is read-only", remedy="drop read_only=True"
            )
        return _address(self.stored.target, path)

    def paths(self, path: str) -> Sequence[str]:
        """Ask the store."""
        return self.stored.paths(path)

    def table(self, path: str) -> Stored | None:
        """Look at names; Spark itself compares the headers of CSV files."""
        base = PurePosixPath(path)
        sizes: dict[PurePath, int] = {}
        for name, entry in self.stored.entries(path).items():
            found = PurePosixPath(name)
            inside = found.relative_to(base if found != base else base.parent)
            if is_data(inside) or found == base:
                sizes[inside] = entry.size
        if not sizes:
            return None
        first, address = min(sizes), self.source(path)
        names = tuple(name for name, _ in partition_of(first) or ())
        return Stored(address, *kind_of(sizes), names, f"{address}/{first}")

    def save(self, path: str, how: SaveMode, write: Write) -> bool:
        """Leave it to Spark, except single partitions: its committer cannot replace those.

        Names stay as they are: to rename an object is to copy it.
        """
        if not how.partitions:
            write(how.mode, self.target(path))
            return False
        before = self._data(path)
        write("append", self.target(path))
        self._replace(before, self._data(path) - before)
        return False

    def _data(self, path: str) -> set[str]:
        return {name for name in self.stored.paths(path) if not is_leftover(name)}

    def _replace(self, before: set[str], new: set[str]) -> None:
        """Remove the old files of the partitions that have new ones."""
        folders = {name.rpartition("/")[0] for name in new}
        self.stored.remove([name for name in before if name.rpartition("/")[0] in folders])

    def scrub(self) -> None:
        """Leave it to the store's side, which knows what the input had."""
        self.stored.changes()


@dataclass(frozen=True, slots=True)
class NearbyPlace(DirectPlace):
    """The store itself, for a Spark of this machine: it writes a table here, and we send it.

    Nothing of a job that fails ever reaches the branch.
    """

    check: Callable[[], None]
    """Raises when the attempt is lost."""
    salts: AppendSalts = field(default_factory=AppendSalts)

    def save(self, path: str, how: SaveMode, write: Write) -> bool:
        """Write to the scratch directory, then bring the files to where the mode wants them."""
        self.target(path)  # Refuses a task that is read-only.
        before = set() if how.mode == "append" else self._data(path)
        if before and how.mode == "ignore":
            return False
        if before and how.mode == "error":
            raise UsageError(
                f"write to {path!r}: there is something already",
                remedy="give write() mode='overwrite', 'append' or 'ignore'",
            )
        self.stored.scratch.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="written-", dir=self.stored.scratch) as directory:
            write("append", f"file://{Path(directory).absolute()}")
            self.check()
            if how.has_names:
                salt = self.salts.of(path, how, self.stored.source)
                rename_parts(Path(directory), "", salt=salt)
            new = {*self.stored.bring(Path(directory), path, lambda _: self.check())}
        if how.partitions:
            self._replace(before - new, new)
        elif how.mode == "overwrite":
            self.stored.remove(sorted(before - new))
        return False


def _is_left(directory: int, entry: os.DirEntry[str], path: str) -> bool:
    """Look into a file that is named like a leftover; what cannot be opened stays."""
    if not is_leftover(path) or not entry.is_file(follow_symlinks=False):
        return False
    try:
        fd = os.open(entry.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return False
    with os.fdopen(fd, "rb") as opened:
        return is_left_by_spark(path, opened.read(8))


def _address(base: str, path: str) -> str:
    return f"s3a://{base}{path}".removesuffix("/")
