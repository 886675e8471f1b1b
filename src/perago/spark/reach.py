"""Asks whether a standalone master is there before a JVM is started to register with it."""

from __future__ import annotations

import socket
from typing import Final

from perago.errors import TaskFailed
from perago.protocol.spark import addresses

_SECONDS: Final = 10.0


def reach(master: str) -> None:
    """Refuse a master that nobody listens for; Spark itself would try for a minute or more."""
    asked = addresses(master)
    problems = []
    for address in asked:
        try:
            socket.create_connection(address, _SECONDS).close()
        except OSError as error:
            problems.append(error.strerror or str(error))
        else:
            return
    if asked:
        raise TaskFailed(
            f"no Spark master answers at {master}: {problems[0]}",
            remedy="start it, or correct the master in SparkSpec or PERAGO_SPARK_MASTER",
        )
