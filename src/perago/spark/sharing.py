"""Makes sure that executors elsewhere write where this machine reads (X2).

Spark does not notice when they do not: a table written by machines that each have a directory of
the same name is complete for Spark, and empty here.
"""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from perago.errors import RuntimeConfigError
from perago.protocol.spark import shown

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PARTS = 2
_known: set[str] = set()
"""Masters whose machines were seen to share; asked once, it costs a job."""


def check_shared(session: SparkSession, master: str, attempt_dir: Path) -> None:
    """Have the executors write something beside the workspace, and look for it."""
    if master in _known:
        return
    # A name that counts as a leftover, should this process be killed now.
    probe = attempt_dir / f"_temporary-{uuid.uuid4().hex}"
    try:
        found = written(session, f"file://{probe.absolute()}", probe)
    finally:
        shutil.rmtree(probe, ignore_errors=True)
    if found < _PARTS:
        raise RuntimeConfigError(
            f"the machines of master {shown(master)!r} do not write to {attempt_dir} of this one,"
            " though PERAGO_SPARK_SHARED_ROOT is true",
            remedy="mount the same storage there under the same path, or use a direct workspace",
        )
    _known.add(master)


def written(session: SparkSession, place: str, seen_at: Path) -> int:
    """Write a file per task to a place, and count those that are seen at a path."""
    session.range(0, _PARTS, 1, _PARTS).write.mode("overwrite").json(place)
    return sum(1 for _ in seen_at.rglob("part-*.json"))
