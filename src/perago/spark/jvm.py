"""The one JVM of this process: started when it is first needed, shared by one session each (X3)."""

from __future__ import annotations

import atexit
import shutil
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Final

from perago.errors import RuntimeConfigError
from perago.protocol.spark import Application
from perago.settings import SparkSettings
from perago.spark import udfs
from perago.spark.launch import RunningJvm, configuration, launch, python_of
from perago.spark.packaging import collect, same_path
from perago.spark.reach import reach

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_END_SECONDS: Final = 20.0


class Jvm:
    """Starts, shares, replaces and ends the JVM. Several threads may use it at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._launched: RunningJvm | None = None
        self._application: Application | None = None
        self._base: Any = None
        self._users = 0

    @property
    def pid(self) -> int | None:
        """Return the process id of the JVM that runs, if one does."""
        return self._launched.process.pid if self._launched else None

    @property
    def users(self) -> int:
        """Return how many sessions are open."""
        return self._users

    def enter(
        self,
        application: Application,
        settings: SparkSettings,
        starting: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> SparkSession:
        """Open a session of its own: views and SQL settings of others are not in it.

        ``starting`` is entered while a JVM starts; one that runs already is used as it is.
        """
        with self._lock:
            if self._base is not None and (not self._healthy() or self._application != application):
                self._make_way(application)
            if self._base is None:
                with starting():
                    self._start(application, settings)
            session: SparkSession = self._base.newSession()
            self._users += 1
            return session

    def leave(self, session: SparkSession) -> None:
        """Give a session back; what it cached goes with the last of them."""
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._healthy():
                session.catalog.clearCache()

    def tag(self, session: SparkSession, tag: str) -> None:
        """Mark the jobs of this thread and of those it starts, RDD jobs included."""
        session.sparkContext.addJobTag(tag)

    def untag(self, session: SparkSession, tag: str) -> None:
        """Stop marking them."""
        session.sparkContext.removeJobTag(tag)

    def interrupt(self, session: SparkSession, tag: str) -> None:
        """End the jobs of a session and of a tag."""
        with suppress(Exception):
            session.interruptAll()
        session.sparkContext.cancelJobsWithTag(tag)

    def ship(self, session: SparkSession) -> None:
        """Send the author's modules to the executors; they last as long as the JVM."""
        code = collect()
        if code is None or self._launched is None:
            return
        path = self._launched.scratch / code.name
        with self._lock:
            if path.exists():
                return
            path.write_bytes(code.data)
            with same_path():
                session.sparkContext.addPyFile(str(path))

    def stop(self) -> None:
        """End the JVM; the next session starts another."""
        with self._lock:
            self._end()

    def _healthy(self) -> bool:
        """Return whether it can be used: a body may have stopped it, or it ran out of memory."""
        if self._launched is None or self._launched.process.poll() is not None:
            return False
        context = self._base.sparkContext
        return context._jsc is not None and not context._jsc.sc().isStopped()  # noqa: SLF001 - there is no other way to ask

    def _make_way(self, application: Application) -> None:
        """End a JVM that does not fit; with sessions of other attempts on it, that cannot be."""
        if self._users and self._healthy():
            raise RuntimeConfigError(
                f"Spark runs here with other settings than {application.master!r} needs, and is "
                "in use",
                remedy="give the tasks of one worker the same SparkSpec, or use "
                "--execution-mode process",
            )
        self._end()

    def _start(self, application: Application, settings: SparkSettings) -> None:
        from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - slow, and an optional extra
        from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

        if SparkContext._active_spark_context is not None:  # noqa: SLF001 - as above
            raise RuntimeConfigError(
                "Spark was already started in this process by other code",
                remedy="take the session as a parameter 'spark: SparkSession' instead of making it",
            )
        reach(application.master)
        launched = launch(application, settings)
        conf = SparkConf(loadDefaults=False)
        conf.setAll(list(configuration(application, settings, launched.scratch).items()))
        try:
            context = SparkContext(conf=conf, gateway=launched.gateway)
            _check_accepted(context)
            base = SparkSession(context)
        except Exception as error:  # noqa: BLE001 - py4j, PySpark and Java each have their own
            self._launched = launched
            self._end()
            raise RuntimeConfigError(
                f"Spark did not start with master {application.master!r}: {_why(error)}",
                remedy="check the master and conf of the task's SparkSpec",
            ) from None
        self._launched, self._application, self._base = launched, application, base
        if python := python_of(application):
            context.pythonExec = python
        udfs.adopt()
        atexit.register(self.stop)

    def _end(self) -> None:
        """Stop in order where it still can be, then make sure, then forget it."""
        from pyspark import SparkContext  # noqa: PLC0415 - slow, and an optional extra
        from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

        launched, self._launched = self._launched, None
        base, self._base = self._base, None
        if launched is None:
            return
        atexit.unregister(self.stop)
        with suppress(Exception):  # the JVM may be gone, and py4j says so in many ways
            if base is not None:
                base.stop()
        with suppress(Exception):
            launched.gateway.shutdown()
        if launched.process.stdin is not None:
            launched.process.stdin.close()  # it waits for this to end
        try:
            launched.process.wait(_END_SECONDS)
        except Exception:  # noqa: BLE001 - whatever it is, the process must go
            launched.process.kill()
            launched.process.wait(_END_SECONDS)
        launched.listener.join(_END_SECONDS)
        shutil.rmtree(launched.scratch, ignore_errors=True)
        # PySpark keeps the way to its JVM on the class; without this the next one is never used.
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - there is no public way
        SparkContext._active_spark_context = None  # noqa: SLF001 - as above
        SparkSession._instantiatedSession = None  # noqa: SLF001 - as above


def _check_accepted(context: SparkContext) -> None:
    """Notice a master that never answered: Spark goes on without, and ends itself a bit later."""
    if context.applicationId.startswith("spark-application-"):  # the name of one without a master
        raise ConnectionError


def _why(error: Exception) -> str:
    """Return what Java said, without where in Java it was."""
    lines = str(error).strip().splitlines()
    if isinstance(error, ConnectionError) or "stopped SparkContext" in str(error):
        return "the master did not answer as one of this version of Spark does"
    return lines[1].lstrip(": ") if len(lines) > 1 else str(error)


JVM: Final = Jvm()
"""The JVM of this process."""
