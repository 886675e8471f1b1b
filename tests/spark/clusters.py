"""Real Spark servers from the installed PySpark: a standalone master, its workers, Connect."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pyspark

from tests.patience import LIMIT, until

HOST, OTHER_HOST = "127.0.0.1", "127.0.0.2"
"""Spark runs the twin of a slow task on another host only; both are this machine."""
SECONDS = 2 * LIMIT
_HOME = Path(pyspark.__file__).parent
_QUICK = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


@contextmanager
def standalone(
    home: Path, hosts: Sequence[str] = (HOST, OTHER_HOST), secret: str = ""
) -> Iterator[str]:
    """Start a master and workers of one core each, one on each host; give the address.

    With a secret, only who knows it may talk to them.
    """
    port = free_port()
    home.mkdir(parents=True, exist_ok=True)
    rules = home / "rules.conf"
    keys = ("authenticate true", f"authenticate.secret {secret}", "network.crypto.enabled true")
    rules.write_text("".join(f"spark.{line}\n" for line in keys) if secret else "")
    address = f"spark://{HOST}:{port}"
    deploy = "org.apache.spark.deploy"
    quiet = ("--webui-port", "0", "--properties-file", str(rules))
    with ExitStack() as stack:
        log = stack.enter_context(
            _server(
                home / "master",
                f"{deploy}.master.Master",
                *quiet,
                *("--host", HOST, "--port", str(port)),
            )
        )
        _wait(lambda: _listens(port), log)
        for host in hosts:
            part = home / f"worker-{host}"
            size = ("--host", host, "-c", "1", "-m", "1g", "-d", str(part))
            name = f"{deploy}.worker.Worker"
            stack.enter_context(_server(part, name, *quiet, *size, address, host=host))
        _wait(lambda: log.read_text().count("Registering worker") == len(hosts), log)
        yield address


@contextmanager
def connect(home: Path) -> Iterator[str]:
    """Start a Connect server on two threads; give the address."""
    port = free_port()
    name = "org.apache.spark.sql.connect.service.SparkConnectServer"
    conf = {
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": HOST,
        "spark.driver.host": HOST,
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.local.dir": str(home),
    }
    settings = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    submit = ("--class", name, "--master", "local[2]", *settings, "spark-internal")
    with _server(home, "org.apache.spark.deploy.SparkSubmit", *submit, memory="900m") as log:
        _wait(lambda: _listens(port), log)
        yield f"sc://{HOST}:{port}"


@contextmanager
def _server(
    home: Path, name: str, *arguments: str, memory: str = "256m", host: str = HOST
) -> Iterator[Path]:
    """Run a class of Spark in a directory that holds nothing of ours; give its log."""
    home.mkdir(parents=True)
    log = home / "log.txt"
    environ = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environ |= {
        "SPARK_HOME": str(_HOME),
        "SPARK_LOCAL_IP": host,
        "SPARK_DAEMON_MEMORY": memory,
        "SPARK_DAEMON_JAVA_OPTS": f"{_QUICK} -Dspark.master.rest.enabled=false",
        "PYSPARK_PYTHON": sys.executable,
    }
    with log.open("wb") as out:
        process = subprocess.Popen(
            [_HOME / "bin" / "spark-class", name, *arguments],
            cwd=home,
            env=environ,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield log
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(SECONDS)


def free_port() -> int:
    with socket.socket() as found:
        found.bind((HOST, 0))
        return int(found.getsockname()[1])


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection((HOST, port), 1.0):
        return True
    return False


def _wait(true: Callable[[], bool], log: Path) -> None:
    until(true, f"a server, see {log}", SECONDS, every=0.1)
