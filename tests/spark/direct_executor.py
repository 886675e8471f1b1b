"""A process that runs attempts on a direct workspace until somebody kills it.

The first line of its input says where; when Spark is warm it says so and waits for a second line.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from perago.dev import LakeFSEndpoint
from perago.settings import SparkSettings
from perago.spark.jvm import JVM
from perago.testing import Lab
from tests.lakefs_lab import ArrangedLakeFS
from tests.spark import direct_tasks as tasks


def main() -> None:
    told = json.loads(sys.stdin.readline())
    root = Path(told["root"])
    endpoint = LakeFSEndpoint(**told["endpoint"])
    store = ArrangedLakeFS(endpoint, root / "worker", url=told["url"])
    spark = SparkSettings(conf=told["conf"])
    lab = Lab(root / "lab", store=store, repository=told["repository"], spark=spark)
    lab._made = True  # noqa: SLF001 - the repository is there already
    warm = lab.run(tasks.look)
    sys.stdout.write(f"{warm.reason or 'ready'}\n")
    sys.stdout.flush()
    sys.stdin.readline()
    first = lab.run(tasks.write, told["params"])
    second = first.retry() if not first.completed else first
    answer = {"reason": first.reason, "completed": second.completed, "result": second.result}
    sys.stdout.write(json.dumps(answer) + "\n")
    lab.close()
    JVM.stop()


if __name__ == "__main__":
    main()
