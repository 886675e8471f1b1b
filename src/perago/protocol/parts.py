"""The names of Spark's part files, and when two sets of them are the same table (X13).

Spark calls a file ``part-00000-<UUID>-c000.snappy.parquet``: the number of the task, a UUID, a
bucket if there are buckets, a counter, the format. The UUID is random for every write, so equal
tables have unequal names. Here the UUID follows from the content instead.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from perago.protocol.spark import is_leftover
from perago.protocol.values import ChangeSet, Manifest

PLAIN_FORMATS = frozenset({"parquet", "csv", "json", "orc", "text", "xml", "avro"})
"""Formats of Spark whose tables are their part files: nothing else mentions the names."""
_ENDINGS = "parquet|csv|json|orc|txt|xml|avro"
_PART = re.compile(
    rf"""(?P<folder>(?:.*/)?)
    (?P<number>part-[0-9]{{5,}})-
    (?P<uuid>[0-9a-f]{{8}}-[0-9a-f]{{4}}-[0-9a-f]{{4}}-[0-9a-f]{{4}}-[0-9a-f]{{12}})
    (?P<rest>(?:_[0-9]{{5,}})?[-.]c[0-9]{{3,}}(?:\.[a-z0-9]+)?\.(?:{_ENDINGS})(?:\.[a-z0-9]+)?)
    """,
    re.VERBOSE | re.DOTALL,
)
_LOGS = frozenset({"_delta_log", "_spark_metadata", ".hoodie", "metadata"})
_RANDOM = "4"
_CUSTOM = "8"


@dataclass(frozen=True, slots=True)
class Part:
    """The path of a part file in pieces; the folder ends in ``/`` unless it is empty."""

    folder: str
    number: str
    uuid: str
    rest: str

    @property
    def slot(self) -> tuple[str, str, str]:
        """Return which part of the table it is: all of the path but the UUID."""
        return self.folder, self.number, self.rest

    @property
    def is_random(self) -> bool:
        """Return whether Spark chose the UUID, as it does by chance."""
        return self.uuid[14] == _RANDOM

    @property
    def table(self) -> str:
        """Return the directory of the table: above the directories ``column=value``."""
        parts = self.folder.rstrip("/").split("/")
        while parts and "=" in parts[-1]:
            parts.pop()
        return "/".join(parts)

    def path(self, made: str) -> str:
        """Return the path with another UUID."""
        return f"{self.folder}{self.number}-{made}{self.rest}"


def part_of(path: str) -> Part | None:
    """Read the path of a part file; None when it is another file."""
    found = _PART.fullmatch(path)
    return Part(**found.groupdict()) if found else None


def can_be_named(files: Iterable[str]) -> bool:
    """Return whether nothing in a table mentions its part files by name.

    What is hidden may: a log, a summary of Parquet footers, a list of committed files.
    """
    return not any(
        name.startswith(("_", ".")) and "=" not in name
        for path in files
        if not is_leftover(path)
        for name in path.split("/")
    )


def content_uuid(digest: str, salt: str = "", turn: int = 0) -> str:
    """Make a UUID (version 8: of one's own making) of what a file holds."""
    text = "\0".join(("perago part file", digest, salt, str(turn)))
    made = hashlib.sha256(text.encode()).hexdigest()
    return f"{made[:8]}-{made[8:12]}-{_CUSTOM}{made[12:15]}-a{made[15:18]}-{made[18:30]}"


def new_names(
    digests: Mapping[str, str], taken: Collection[str], salt: str = ""
) -> Mapping[str, str]:
    """Return a new path for each part file that Spark named by chance.

    Equal contents in the same slot get the same names whatever they are called now, and no two
    files the same one: a name that is taken is not given again.
    """
    found = [(part, path) for path in digests if (part := part_of(path)) and part.is_random]
    used = {*taken, *digests}
    names: dict[str, str] = {}
    for part, path in sorted(found, key=lambda item: (item[0].slot, digests[item[1]], item[1])):
        turn = 0
        while (name := part.path(content_uuid(digests[path], salt, turn))) in used:
            turn += 1
        used.add(name)
        names[path] = name
    return names


def may_be_renamed(steps: ChangeSet) -> bool:
    """Tell by names alone whether a change may consist of part files with other UUIDs."""
    if not steps.added or steps.changed:
        return False
    found = [part_of(path) for path in (*steps.added, *steps.removed)]
    slots = [part.slot for part in found if part]
    cut = len(steps.added)
    return len(slots) == len(found) and Counter(slots[:cut]) == Counter(slots[cut:])


def only_names_differ(steps: ChangeSet, before: Manifest, after: Manifest) -> bool:
    """Return whether a change consists of part files with other UUIDs and the same contents.

    The number and the counter of each file stay, because they may carry the order of the rows. An
    unknown checksum never counts as equal (G2).
    """
    return (
        may_be_renamed(steps)
        and all(path in before and before[path].checksum for path in steps.removed)
        and all(path in after for path in steps.added)
        and _held(steps.added, after) == _held(steps.removed, before)
    )


def tables_of(steps: ChangeSet) -> Mapping[str, ChangeSet]:
    """Return the tables whose part files changed, each with all that changed in its directory.

    A table with a log (Delta, Iceberg, Hudi, a stream) is none of these: its files mean nothing
    without the log.
    """
    paths = (*steps.added, *steps.changed, *steps.removed)
    logged = {table for path in paths for table in _logged(path)}
    roots = {part.table for path in paths if (part := part_of(path))}
    return {
        root: ChangeSet(*map(tuple, (_below(root, each) for each in _kinds(steps))))
        for root in sorted(roots)
        if logged.isdisjoint(_above(root))
    }


def _kinds(steps: ChangeSet) -> tuple[tuple[str, ...], ...]:
    return steps.added, steps.changed, steps.removed


def _logged(path: str) -> Iterator[str]:
    """Yield the tables whose log a file may belong to."""
    folders = path.split("/")[:-1]
    yield from ("/".join(folders[:at]) for at, name in enumerate(folders) if name in _LOGS)


def _below(root: str, paths: Iterable[str]) -> Iterator[str]:
    return (path for path in paths if not root or path.startswith(f"{root}/"))


def _above(root: str) -> Iterator[str]:
    """Yield a directory and all above it."""
    yield root
    while root:
        root = root.rpartition("/")[0]
        yield root


def _held(paths: Iterable[str], manifest: Manifest) -> Counter[object]:
    return Counter((part.slot, manifest[path]) for path in paths if (part := part_of(path)))
