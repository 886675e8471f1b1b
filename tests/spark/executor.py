"""A process with its own JVM and Python worker; says both numbers, then waits to be killed."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from perago.settings import SparkSettings
from perago.spark.jvm import JVM
from perago.spark.session import AttemptSession
from tests.spark.tasks import SMALL


def main() -> None:
    session = AttemptSession(SMALL.need, "killed", SparkSettings(scratch=Path(sys.argv[1])))
    numbers = session.open().sparkContext.parallelize([0], 1)
    worker = numbers.map(lambda _: os.getpid()).collect()[0]
    sys.stdout.write(f"{JVM.pid} {worker}\n")
    sys.stdout.flush()
    time.sleep(3600)  # until it is killed


if __name__ == "__main__":
    main()
