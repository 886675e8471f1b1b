"""A huge prefix copied to files as Spark jobs: names are checked first, then workers fetch (X6).

The directory has to be one that all workers see.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from perago.errors import UnsafePathError
from perago.filesystem import trees
from perago.ports import Fetch
from perago.protocol.paths import Selection, fold, plan_download
from perago.protocol.values import Manifest, ObjectInfo
from perago.spark.batches import batch, ddl
from perago.spark.origin import Origin
from perago.transfer.filling import filling, keep, tree_of, trying

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NAMED: Final = {"fold": "STRING", "spelling": "STRING", "directory": "BOOLEAN", "why": "STRING"}
_COPIED: Final = {"files": "LONG", "bytes": "LONG"}


def copy(found: DataFrame, work: Copy, parts: int) -> tuple[int, int]:
    """Write a manifest's objects to files, verified (D3); returns how many, and their bytes.

    Nothing is written when any name is one that must not be a file, or two cannot be told apart
    (D2): ``UnsafePathError``. The files are seen when all of them are there.
    """
    _refuse(found.mapInArrow(Names(work.select), ddl(_NAMED)))
    spread = found.repartition(parts, "key")
    with filling(Path(work.directory)) as draft:
        there = replace(work, directory=str(draft))
        rows = spread.mapInArrow(there, ddl(_COPIED)).collect()
    return sum(row["files"] for row in rows), sum(row["bytes"] for row in rows)


def _refuse(names: DataFrame) -> None:
    """Compare every file and directory with all others of the same folded name."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - as everybody calls it

    told = names.groupBy("fold").agg(
        F.min("spelling").alias("first"),
        F.max("spelling").alias("second"),
        F.max("directory").alias("any_directory"),
        F.min("directory").alias("all_directories"),
        F.max("why").alias("why"),
    )
    apart = (F.col("first") == F.col("second")) & (
        F.col("any_directory") == F.col("all_directories")
    )
    bad = told.where(F.col("why").isNotNull() | ~apart).orderBy("fold").limit(1).collect()
    if not bad:
        return
    row = bad[0]
    raise UnsafePathError(
        row["why"]
        or f"objects {row['first']!a} and {row['second']!a} are one name to some file systems",
        remedy="rename or delete one of them in the store, then start from the new commit",
    )


@dataclass(frozen=True)
class Names:
    """What each worker says of its part of the names."""

    select: Selection

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield each file and each directory above it, or what is wrong with one of them."""
        for part in batches:
            try:
                yield batch(self._rows(_plan(self.select, part)), _NAMED)
            except UnsafePathError as error:
                nothing = {"fold": "", "spelling": "", "directory": False}
                yield batch([{**nothing, "why": error.message}], _NAMED)

    def _rows(self, plan: Manifest) -> list[dict[str, object]]:
        names = {(path, False) for path in plan}
        for path in plan:
            above = path.rpartition("/")[0]
            while above and (above, True) not in names:
                names.add((above, True))
                above = above.rpartition("/")[0]
        return [
            {"fold": fold(name), "spelling": name, "directory": directory, "why": None}
            for name, directory in names
        ]


@dataclass(frozen=True)
class Copy:
    """What each worker does: opens the store with its own keys, and fetches.

    Spark may have the same part done twice at once (speculation), or again: each try has a place
    of its own, and a file that came whole is never removed.
    """

    origin: Origin
    repository: str
    commit: str
    select: Selection
    directory: str

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Fetch batches of a manifest."""
        draft = Path(self.directory)
        with self.origin.open() as store, trees.opened(tree_of(draft)) as tree:
            for part in batches:
                plan = _plan(self.select, part)
                self._bring(store, plan, draft, tree)
                moved = sum(entry.size for entry in plan.values())
                yield batch([{"files": len(plan), "bytes": moved}], _COPIED)

    def _bring(self, store: Any, plan: Manifest, draft: Path, tree: int) -> None:
        with trying(draft) as place, trees.opened(place) as tries:
            wanted = [
                Fetch(self.select.key(path), entry, place / str(number))
                for number, (path, entry) in enumerate(plan.items())
            ]
            store.fetch(self.repository, self.commit, wanted, lambda _: None)
            for number, path in enumerate(plan):
                keep(tries, str(number), tree, path)


def _plan(select: Selection, part: Any) -> Manifest:
    return plan_download(select, (ObjectInfo(**row) for row in part.to_pylist()))
