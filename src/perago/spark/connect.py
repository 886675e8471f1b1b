"""Sessions on a Spark Connect server: no JVM of ours, one session for each attempt (X3, X4)."""

from __future__ import annotations

import importlib
import os
import tempfile
import threading
import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from perago.errors import RuntimeConfigError, TaskFailed
from perago.protocol.spark import SESSION_DEFAULTS, Application, shown
from perago.settings import SparkSettings
from perago.spark import udfs
from perago.spark.packaging import collect, same_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# PySpark's own switch: with it, `functions.col` and the like make what a Connect session takes.
_SWITCH: Final = "SPARK_CONNECT_MODE_ENABLED"
_ANSWER_SECONDS: Final = 20.0
# A server that went away is asked again for about half a minute; PySpark would for ten.
_RETRIES: Final = {"max_retries": 9, "max_backoff": 5_000}
_FEW: Final = {"max_retries": 4, "max_backoff": 1_000}
# Spark's conf of a session is also what its writers take Hadoop's settings from.
_DATA_ONLY: Final = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
_REMEDY: Final = "start the server, or correct the address in SparkSpec or PERAGO_SPARK_MASTER"


class Connect:
    """Opens and closes sessions on servers; several threads may use it at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0

    @property
    def users(self) -> int:
        """Return how many sessions are open."""
        return self._users

    def enter(self, application: Application, settings: SparkSettings) -> SparkSession:  # noqa: ARG002 - as the JVM's
        """Open a session that no other attempt shares."""
        sessions, client = _modules()
        _answer(application.master, client)
        with self._lock:
            self._users += 1
            os.environ[_SWITCH] = "1"
        session = None
        try:
            session = sessions.SparkSession.builder.remote(application.master).create()
            session.client.set_retry_policies([client.DefaultPolicy(**_RETRIES)])
            _check_server(session, application)
            for key, value in {**SESSION_DEFAULTS, **_DATA_ONLY}.items():
                session.conf.set(key, value)
        except BaseException:
            self.leave(session)
            raise
        udfs.adopt()
        # The error that follows says it better.
        warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")
        return session  # type: ignore[no-any-return]

    def leave(self, session: SparkSession | None) -> None:
        """Close a session; what the server keeps for it goes."""
        if session is not None:
            with suppress(Exception):  # a server that is gone keeps nothing
                session.client.set_retry_policies([])
            with suppress(Exception):
                session.stop()
        with self._lock:
            self._users -= 1
            if self._users == 0:
                os.environ.pop(_SWITCH, None)

    def tag(self, session: SparkSession, tag: str) -> None:
        """Mark what a session does from now on."""
        session.addTag(tag)

    def untag(self, session: SparkSession, tag: str) -> None:
        """Stop marking it."""
        session.removeTag(tag)

    def interrupt(self, session: SparkSession, tag: str) -> None:  # noqa: ARG002 - as the JVM's
        """End whatever runs in a session, started by any thread of the author's."""
        session.client.set_retry_policies([_modules()[1].DefaultPolicy(**_FEW)])
        session.interruptAll()

    def ship(self, session: SparkSession) -> None:
        """Send the author's modules; they last as long as the session."""
        code = collect()
        if code is None:
            return
        with tempfile.TemporaryDirectory(prefix="perago-code-") as folder:
            path = Path(folder, code.name)
            path.write_bytes(code.data)
            with same_path():
                session.addArtifacts(str(path), pyfile=True)


def _modules() -> tuple[Any, Any]:
    """Import what Connect needs, or name the extra that brings it."""
    try:
        sessions = importlib.import_module("pyspark.sql.connect.session")
        return sessions, importlib.import_module("pyspark.sql.connect.client.core")
    except ImportError as error:
        said = str(error).splitlines()[0]
        raise RuntimeConfigError(
            f"Spark Connect needs packages that are not here: {said}",
            remedy="install 'perago[connect]'",
        ) from None


def _answer(master: str, client: Any) -> None:
    """Make sure that somebody answers, and do not wait for long."""
    from pyspark.errors import PySparkValueError  # noqa: PLC0415 - an optional extra

    grpc = importlib.import_module("grpc")
    try:
        channel = client.DefaultChannelBuilder(master).toChannel()
    except PySparkValueError as error:
        said = str(error).splitlines()[0].partition("] ")[2].replace(master, shown(master))
        raise RuntimeConfigError(f"master {shown(master)!r}: {said}", remedy=_REMEDY) from None
    try:
        grpc.channel_ready_future(channel).result(timeout=_ANSWER_SECONDS)
    except grpc.FutureTimeoutError:
        raise TaskFailed(
            f"no Spark Connect server answers at {shown(master)}", remedy=_REMEDY
        ) from None
    finally:
        channel.close()


def _check_server(session: Any, application: Application) -> None:
    """Refuse a server that would give a query another meaning than the task's settings do."""
    for key, value in application.conf:
        if key.startswith("spark.sql.") and (found := session.conf.get(key, "")) != value:
            raise RuntimeConfigError(
                f"the Spark Connect server has {key}={found!r}, and the task needs {value!r}",
                remedy="start the server with it: it cannot be set in a session",
            )


CONNECT: Final = Connect()
"""The way of this process to Connect servers."""
