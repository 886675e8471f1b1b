"""A Spark session for a command: started for it, watched, and ended with it."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from perago.protocol.spark import SparkNeed
from perago.settings import SparkSettings
from perago.spark import java
from perago.spark.errors import explained

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOK_SECONDS: Final = 0.3
_PARTS_OF_A_CORE: Final = 8
_PARTS_ELSEWHERE: Final = 64


@contextmanager
def session(settings: SparkSettings) -> Iterator[SparkSession]:
    """Open a session that reads the format ``perago``; what goes wrong is told in a sentence."""
    java.check()
    from perago.spark.jvm import JVM  # noqa: PLC0415 - an optional extra
    from perago.spark.session import AttemptSession  # noqa: PLC0415 - as above

    opened = AttemptSession(SparkNeed(), uuid.uuid4().hex, settings)
    try:
        with explained():
            yield opened.open()
    finally:
        opened.close()
        JVM.stop()


@contextmanager
def watched(spark: SparkSession, tell: Callable[[int, int], None]) -> Iterator[None]:
    """Tell now and then how many tasks of the running stage are done, and of how many."""
    over = threading.Event()

    def watch() -> None:
        try:
            tracker = spark.sparkContext.statusTracker()
        except Exception:  # noqa: BLE001 - Spark Connect does not tell
            return
        while not over.wait(_LOOK_SECONDS):
            with suppress(Exception):  # A stage may be gone between two questions.
                for stage in tracker.getActiveStageIds():
                    if found := tracker.getStageInfo(stage):
                        tell(found.numCompletedTasks, found.numTasks)

    watcher = threading.Thread(target=watch, name="perago-spark-watch", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def parts(spark: SparkSession) -> int:
    """Say into how many parts a long job is cut: enough that a slow one holds nobody up."""
    try:
        return _PARTS_OF_A_CORE * spark.sparkContext.defaultParallelism
    except Exception:  # noqa: BLE001 - Spark Connect does not tell
        return _PARTS_ELSEWHERE
