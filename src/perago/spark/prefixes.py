"""Work on huge prefixes as Spark jobs: compare and check what no driver could hold (X6)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from perago.ports import Damage
from perago.protocol.values import ObjectInfo
from perago.spark.batches import batch, ddl
from perago.spark.origin import Origin
from perago.spark.source import register
from perago.stores import verifying
from perago.stores.key_ranges import Listed
from perago.stores.verifying import Verified

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NAMED_OF_A_BATCH: Final = 100
_COUNTS: Final = ("objects", "bytes", "unchecked", "missing", "corrupt")
_NAMES: Final = ("key", "problem", "why")
_CHECKED: Final = {**dict.fromkeys(_COUNTS, "LONG"), **dict.fromkeys(_NAMES, "STRING")}


def objects(
    spark: SparkSession, origin: Origin, repository: str, ref: str, prefix: str = ""
) -> DataFrame:
    """Return the manifest of a ref below a prefix: key, size, checksum."""
    register(spark)
    options = {"what": "objects", "repository": repository, "ref": ref, "prefix": prefix}
    return spark.read.format("perago").options(**origin.options, **options).load()


def diff(left: DataFrame, right: DataFrame) -> DataFrame:
    """Compare two manifests, of one store or of two; ``kind`` is added, changed or removed.

    By content; an unknown checksum never counts as equal (G2). The driver holds nothing of it.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - as everybody calls it

    old = left.select("key", *(F.col(name).alias(f"old_{name}") for name in ("size", "checksum")))
    joined = old.join(right, "key", "full_outer")
    same = (
        (F.col("checksum") != "")
        & (F.col("old_checksum") == F.col("checksum"))
        & (F.col("old_size") == F.col("size"))
    )
    kind = (
        F.when(F.col("old_size").isNull(), "added")
        .when(F.col("size").isNull(), "removed")
        .when(same, None)
        .otherwise("changed")
    )
    return joined.withColumn("kind", kind).where("kind IS NOT NULL")


def verify(found: DataFrame, check: Check, parts: int) -> Verified:
    """Read every object of a manifest again, in so many parts."""
    total = Verified()
    # A listing may be cut unevenly; what is read is spread evenly again.
    spread = found.repartition(parts, "key")
    for row in spread.mapInArrow(check, ddl(_CHECKED)).collect():
        counted = {name: row[name] for name in _COUNTS}
        named = [] if row["key"] is None else [Damage(*(row[name] for name in _NAMES))]
        total.add(Verified(**counted, named=named))
    total.named.sort(key=lambda damage: damage.key)
    return total


@dataclass(frozen=True)
class Check:
    """What each worker does: opens the store with its own keys, and reads."""

    origin: Origin
    repository: str
    commit: str

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Check batches of a manifest; yields counts, and some of what is damaged."""
        with self.origin.open() as store, tempfile.TemporaryDirectory(prefix="perago-") as scratch:
            listed = Listed(store, self.repository, self.commit)
            for part in batches:
                infos = [ObjectInfo(**row) for row in part.to_pylist()]
                yield batch(_rows(verifying.check(listed, infos, Path(scratch))), _CHECKED)


def _rows(found: Verified) -> Iterator[dict[str, object]]:
    """Tell the counts in one row, and some of what is damaged in others."""
    yield {name: getattr(found, name) for name in _COUNTS} | dict.fromkeys(_NAMES)
    for damage in found.named[:_NAMED_OF_A_BATCH]:
        named = {name: getattr(damage, name) for name in _NAMES}
        yield dict.fromkeys(_COUNTS, 0) | named
