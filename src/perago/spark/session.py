"""The session of one attempt: opened when first asked for, cancelled when the attempt is lost."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING

from perago.errors import RuntimeConfigError, StaleAttemptError
from perago.protocol.spark import SparkNeed, split
from perago.settings import SparkSettings
from perago.spark.connect import CONNECT, Connect
from perago.spark.jvm import JVM, Jvm
from perago.tasks.cancellation import on_cancel

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ENTERING = threading.Lock()


class AttemptSession:
    """A Spark session that belongs to one execution, under its own job tag (X3)."""

    def __init__(
        self,
        need: SparkNeed,
        execution_id: str,
        settings: SparkSettings,
        jvm: Jvm = JVM,
        *,
        prepare: Callable[[SparkSession], None] = lambda _: None,
        starting: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """``prepare`` is called once with the session, before anybody else has it.

        ``starting`` is entered while a JVM starts for it.
        """
        configured = SparkNeed(settings.master, settings.conf)
        self.application, self._conf = split(need.over(configured))
        self._settings = settings
        self._prepare = prepare
        self._starting = starting
        self._place: Jvm | Connect = CONNECT if self.application.connect else jvm
        self._other: Jvm | Connect = jvm if self.application.connect else CONNECT
        self._tag = f"perago-{execution_id}"
        self._session: SparkSession | None = None
        self._beside: SparkSession | None = None
        self._lost = threading.Event()

    def open(self) -> SparkSession:
        """Return the session; the first call may have to start the JVM."""
        self.check()
        if self._session is None:
            from perago.spark.source import register  # noqa: PLC0415 - it imports PySpark

            session = self._session = self._enter()
            try:
                self._configure(session)
                self._prepare(session)
                register(session)
                if self.application.ships_code:
                    self._place.ship(session)
                self._place.tag(session, self._tag)
            except BaseException:
                self.close()
                raise
            on_cancel(self.cancel)
        return self._session

    def beside(self) -> SparkSession:
        """Return a second session: settings and views of its own, but the same end."""
        self.open()
        if self._beside is None:
            self._beside = self._place.enter(self.application, self._settings)
        return self._beside

    def check(self) -> None:
        """Refuse to go on once the attempt is lost."""
        if self._lost.is_set():
            raise StaleAttemptError("the attempt was lost while Spark worked for it")

    def cancel(self) -> None:
        """Cancel the jobs that run for this attempt, and let no new one begin; from any thread."""
        self._lost.set()
        for session in (self._session, self._beside):
            if session is not None:
                with suppress(Exception):  # a JVM or a server that is gone runs no jobs
                    self._place.interrupt(session, self._tag)

    def close(self) -> None:
        """Give the session back; what is still running for it is cancelled."""
        session, beside = self._session, self._beside
        if session is None:
            return
        self.cancel()
        self._session = self._beside = None
        with suppress(Exception):
            self._place.untag(session, self._tag)
        for each in filter(None, (beside, session)):
            with suppress(Exception):
                self._place.leave(each)

    def _enter(self) -> SparkSession:
        """Open a session; PySpark is in one of its two modes for a whole process."""
        with _ENTERING:
            if self._other.users:
                raise RuntimeConfigError(
                    "Spark Connect and a Spark of this process cannot be used at the same time",
                    remedy="give the tasks of one worker the same kind of master, or use "
                    "--execution-mode process",
                )
            if isinstance(self._place, Connect):  # Somebody else's server: nothing is started.
                return self._place.enter(self.application, self._settings)
            return self._place.enter(self.application, self._settings, self._starting)

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
