"""Starts the JVM: quietly, with its own scratch directory, and ending when this process ends."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from perago.errors import RuntimeConfigError, WorkspaceError
from perago.filesystem import roots
from perago.protocol.spark import (
    SECRET,
    SESSION_DEFAULTS,
    Application,
    needs_secret,
    protection,
    secrets_of,
)
from perago.protocol.sweep import Owner
from perago.redaction import keep_secret
from perago.settings import SparkSettings
from perago.spark import java
from perago.workspace.attempt_dirs import remove_tree
from perago.workspace.owner import standing, token_of

_OWNER: Final = "owner.json"
_PYTHON: Final = "PYSPARK_PYTHON"
_TAIL_LINES: Final = 20
_FOREIGN_SECONDS: Final = 86_400.0
# What every start says, whatever the log level: it comes before there is a logger.
_NOISE: Final = (
    "WARNING: Using incubator modules",
    "WARNING: A restricted method",
    "WARNING: A terminally deprecated method",
    "WARNING: Use --",
    "WARNING: package sun.",
    "WARNING: Please consider reporting",
    "WARNING: sun.misc.Unsafe",
    "WARNING: java.lang.System",
    "WARNING: Restricted methods",
    "WARNING: All illegal access",
    "Setting default log level to",
    "To adjust logging level use",
    "Using Spark's default log4j profile",
)
# Only these have to be known before the JVM runs, and so may stand on its command line, which
# everybody on the machine can read.
_COMMAND_LINE: Final = (
    *("spark.master", "spark.driver.", "spark.jars", "spark.submit.", "spark.archives"),
)
_LOGGING: Final = """\
rootLogger.level = {level}
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = spark %p %c{{1}}: %m%n%ex{{8}}
"""


@dataclass(frozen=True, slots=True)
class RunningJvm:
    """A JVM that runs: py4j's gateway to it, the process, and where it keeps what it spills."""

    gateway: Any
    process: subprocess.Popen[bytes]
    scratch: Path
    listener: threading.Thread


def launch(application: Application, settings: SparkSettings) -> RunningJvm:
    """Start a JVM for an application; a missing or wrong Java is said in one sentence."""
    java.check()
    from pyspark import SparkConf  # noqa: PLC0415 - an optional extra, and slow to import
    from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415 - as above
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415 - as above

    roots.secure(settings.scratch, roots.SCRATCH)
    sweep(settings.scratch)
    scratch = _scratch(settings.scratch)
    conf = configuration(application, settings, scratch)
    early = SparkConf(loadDefaults=False).setAll(
        [(key, value) for key, value in conf.items() if key.startswith(_COMMAND_LINE)]
    )
    tail: deque[str] = deque(maxlen=_TAIL_LINES)
    read_end, write_end = os.pipe()
    listener = threading.Thread(
        target=_listen, args=(os.fdopen(read_end, "rb"), tail), name="perago-spark-log", daemon=True
    )
    listener.start()
    try:
        with _python(python_of(application)):
            gateway = launch_gateway(early, popen_kwargs={"stderr": write_end})  # type: ignore[no-untyped-call]
    except PySparkRuntimeError as error:
        os.close(write_end)
        listener.join(5.0)
        shutil.rmtree(scratch, ignore_errors=True)
        raise RuntimeConfigError(
            f"Spark's JVM did not start: {_last(tail) or error}",
            remedy="check the master, packages and conf of the task's SparkSpec",
        ) from None
    os.close(write_end)
    return RunningJvm(gateway, gateway.proc, scratch, listener)


def configuration(
    application: Application, settings: SparkSettings, scratch: Path
) -> dict[str, str]:
    """Merge what the task and the worker say over what suits an attempt."""
    logging = scratch / "log4j2.properties"
    logging.write_text(_LOGGING.format(level=settings.log_level))
    given = dict(application.conf)
    options = f"-Dlog4j2.configurationFile={logging.as_uri()} -Djava.io.tmpdir={scratch}"
    if more := given.pop("spark.driver.extraJavaOptions", ""):
        options += f" {more}"
    defaults = {
        "spark.app.name": "perago",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": f"{scratch}/warehouse",
        **SESSION_DEFAULTS,
        # Only data is written: neither _SUCCESS files nor checksum files beside each file.
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    }
    if application.local:
        defaults |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    defaults |= protection(application.master, given)
    if needs_secret(application.master, {**defaults, **given}):
        # It stays in memory: executors find it in their environment, made by Spark's own worker.
        defaults[SECRET] = secrets.token_hex(32)
    fixed = {"spark.master": application.master, "spark.driver.extraJavaOptions": options}
    if application.packages:
        listed = [given.pop("spark.jars.packages", ""), *application.packages]
        fixed["spark.jars.packages"] = ",".join(filter(None, listed))
    merged = {**defaults, **given, **fixed}
    keep_secret(*secrets_of(application.master, merged))
    return merged


def python_of(application: Application) -> str | None:
    """Name the interpreter of Python functions, or None for the one that executors find.

    On this machine it is the driver's own, not the first python3 on PATH.
    """
    given = dict(application.conf).get("spark.pyspark.python") or os.environ.get(_PYTHON)
    return given or (sys.executable if application.local else None)


@contextmanager
def _python(interpreter: str | None) -> Iterator[None]:
    """Start the JVM with the interpreter in its environment: it runs some Python by itself."""
    before = os.environ.get(_PYTHON)
    if interpreter:
        os.environ[_PYTHON] = interpreter
    try:
        yield
    finally:
        os.environ.pop(_PYTHON, None)
        if before is not None:
            os.environ[_PYTHON] = before


def sweep(root: Path) -> None:
    """Remove the scratch directories of processes that were killed."""
    with suppress(FileNotFoundError):
        for path in root.iterdir():
            owner = _owner(path)
            if owner is not None and _is_left(path, standing(*owner)):
                with suppress(WorkspaceError):  # The next one tries again.
                    remove_tree(path, lambda: False)


def _is_left(path: Path, owner: Owner) -> bool:
    """Return whether nobody needs it; of an owner in another container only the age tells (W5)."""
    if owner is Owner.FOREIGN:
        return time.time() - path.stat().st_mtime > _FOREIGN_SECONDS
    return owner is Owner.GONE


def _scratch(root: Path) -> Path:
    pid = os.getpid()
    try:
        number = 0
        while (path := root / f"{pid}-{number}").exists():
            number += 1
        path.mkdir(mode=0o700)
        (path / _OWNER).write_text(json.dumps({"pid": pid, "token": token_of(pid)}))
    except OSError as error:
        raise RuntimeConfigError(
            f"Spark has no place to work in at {root}: {error.strerror or error}",
            remedy="check the permissions and free space there",
        ) from error
    return path


def _owner(path: Path) -> tuple[int, str] | None:
    try:
        found: Mapping[str, Any] = json.loads((path / _OWNER).read_text())
        return int(found["pid"]), str(found["token"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _listen(stream: IO[bytes], tail: deque[str]) -> None:
    """Pass on what the JVM says, without the lines that mean nothing; ends with the JVM."""
    with stream:
        for raw in stream:
            line = raw.decode(errors="replace").rstrip()
            if not line or line.startswith(_NOISE):
                continue
            tail.append(line)
            with suppress(OSError, ValueError):  # our own stderr may be closed already
                sys.stderr.write(line + "\n")


def _last(tail: deque[str]) -> str:
    """Pick the line that tells most: the first cause, not the stack below it."""
    told = [line for line in tail if not line.startswith(("\t", " "))]
    return told[-1] if told else ""
