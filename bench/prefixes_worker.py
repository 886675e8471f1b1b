"""The process of the prefixes comparison: one diff of a million, one way, and what it took."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.crowd import NEW, OLD, million
from bench.prefixes import HEAP_LIMIT_MB
from perago.protocol.diff import diff
from perago.protocol.values import Entry, ObjectInfo
from perago.stores.key_ranges import Listed

Told = tuple[dict[str, int], float, dict[str, float]]


def held() -> Told:
    """Hold both listings, as an attempt does with its manifest."""
    began = time.perf_counter()
    manifests = [
        {info.key: Entry(info.size, info.checksum) for info in _walk(ref)} for ref in (OLD, NEW)
    ]
    found = diff(*manifests)
    counted = {name: len(getattr(found, name)) for name in ("added", "changed", "removed")}
    return (
        counted,
        time.perf_counter() - began,
        {"python, both held: MB at the peak": _peak("self")},
    )


def merged() -> Told:
    """Go through both listings side by side; in one thread, and from one machine."""
    began = time.perf_counter()
    counted = {"added": 0, "changed": 0, "removed": 0}
    old, new = _walk(OLD), _walk(NEW)
    left, right = next(old, None), next(new, None)
    while left or right:
        if left and (not right or left.key < right.key):
            counted["removed"] += 1
            left = next(old, None)
        elif right and (not left or right.key < left.key):
            counted["added"] += 1
            right = next(new, None)
        else:
            counted["changed"] += left != right
            left, right = next(old, None), next(new, None)
    seconds = time.perf_counter() - began
    return counted, seconds, {"python, streams merged: MB at the peak": _peak("self")}


def spark() -> Told:
    """List and compare as a Spark job, in a JVM with little memory."""
    from perago.settings import SparkSettings  # noqa: PLC0415 - the others do without
    from perago.spark import jobs, prefixes  # noqa: PLC0415 - as above
    from perago.spark.jvm import JVM  # noqa: PLC0415 - as above
    from perago.spark.origin import Origin  # noqa: PLC0415 - as above

    began = time.perf_counter()
    conf = {"spark.driver.memory": f"{HEAP_LIMIT_MB}m", "spark.sql.shuffle.partitions": "8"}
    with jobs.session(SparkSettings(conf=conf)) as session:
        session.range(1).count()
        started = time.perf_counter()
        crowd = Origin("/nowhere", "/", "bench.crowd:million")
        sides = (prefixes.objects(session, crowd, "any", ref) for ref in (OLD, NEW))
        rows = prefixes.diff(*sides).groupBy("kind").count().collect()
        seconds = time.perf_counter() - started
        peaks = {
            "spark, driver's Python: MB at the peak": _peak("self"),
            "spark, JVM heap: MB at the peak": _heap(session),
            "spark, JVM process: MB at the peak": _peak(str(JVM.pid)),
            "spark, seconds to start": started - began,
        }
    return {row["kind"]: row["count"] for row in rows}, seconds, peaks


def _walk(ref: str) -> Iterator[ObjectInfo]:
    return Listed(million(), "any", ref).walk()


def _peak(process: str) -> float:
    status = Path("/proc", process, "status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def _heap(session: Any) -> float:
    """Add up the peaks of the heap's pools."""
    factory = session._jvm.java.lang.management.ManagementFactory  # noqa: SLF001 - to ask the JVM
    pools = factory.getMemoryPoolMXBeans()
    used = [pool.getPeakUsage().getUsed() for pool in pools if pool.getType().name() == "HEAP"]
    return float(sum(used)) / (1 << 20)


def main() -> None:
    """Do it, check that it is right, and tell."""
    counted, seconds, peaks = {"held": held, "merged": merged, "spark": spark}[sys.argv[1]]()
    if counted != million().kinds:
        raise SystemExit(f"{counted} is not {million().kinds}")
    print(json.dumps({"seconds": seconds, "peaks": peaks}))


if __name__ == "__main__":
    main()
