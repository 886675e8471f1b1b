"""The session of one attempt: opened when first asked for, cancelled when the attempt is lost."""

from __future__ import annotations

import importlib.util
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from perago.cancelling import on_cancel
from perago.errors import RuntimeConfigError, StaleAttemptError
from perago.protocol.spark import SparkNeed, split
from perago.settings import SparkSettings
from perago.spark.jvm import JVM, Jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class AttemptSession:
    """A Spark session that belongs to one execution, under its own job tag (X3)."""

    def __init__(
        self, need: SparkNeed, execution_id: str, settings: SparkSettings, jvm: Jvm = JVM
    ) -> None:
        configured = SparkNeed(settings.master, settings.conf)
        self.application, self._conf = split(need.over(configured))
        self._settings = settings
        self._jvm = jvm
        self._tag = f"perago-{execution_id}"
        self._session: SparkSession | None = None
        self._lost = threading.Event()

    def open(self) -> SparkSession:
        """Return the session; the first call may have to start the JVM."""
        self.check()
        if self._session is None:
            session = self._jvm.enter(self.application, self._settings)
            self._session = session
            try:
                self._configure(session)
            except BaseException:
                self.close()
                raise
            # The tag holds for this thread and those it starts, RDD jobs included.
            session.sparkContext.addJobTag(self._tag)
            on_cancel(self.cancel)
        return self._session

    def check(self) -> None:
        """Refuse to go on once the attempt is lost."""
        if self._lost.is_set():
            raise StaleAttemptError("the attempt was lost while Spark worked for it")

    def cancel(self) -> None:
        """Cancel the jobs that run for this attempt, and let no new one begin; from any thread."""
        self._lost.set()
        session = self._session
        if session is None:
            return
        with suppress(Exception):  # a JVM that is gone runs no jobs
            session.interruptAll()
        with suppress(Exception):
            session.sparkContext.cancelJobsWithTag(self._tag)

    def close(self) -> None:
        """Give the session back; what is still running for it is cancelled."""
        session = self._session
        if session is None:
            return
        self.cancel()
        self._session = None
        with suppress(Exception):
            session.sparkContext.removeJobTag(self._tag)
        with suppress(Exception):
            self._jvm.leave(session)

    def _configure(self, session: SparkSession) -> None:
        from pyspark.errors import PySparkException  # noqa: PLC0415 - an optional extra

        for key, value in {**_without_pandas(), **self._conf}.items():
            try:
                session.conf.set(key, value)
            except PySparkException as error:
                raise RuntimeConfigError(
                    f"Spark does not take {key}={value!r}: {str(error).splitlines()[0]}",
                    remedy="correct it in the task's SparkSpec or in PERAGO_SPARK_CONF",
                ) from None


def _without_pandas() -> dict[str, str]:
    """Keep Spark from warning at every Python function that it would rather have pandas."""
    if importlib.util.find_spec("pandas") is not None:
        return {}
    return {"spark.sql.execution.pythonUDF.arrow.enabled": "false"}
