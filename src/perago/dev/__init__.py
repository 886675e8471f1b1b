"""Real lakeFS, real Conductor and a real S3 store, for development and tests.

``perago dev up`` on the command line; ``start()`` for test fixtures::

    with start("tests", tmp_path, ["lakefs"], blocks="s3") as instance:
        client = connect(instance.lakefs.endpoint, ...)
"""

from __future__ import annotations

from perago.dev.endpoints import ConductorEndpoint, LakeFSEndpoint, S3Endpoint
from perago.dev.instance import Instance, instances, start
from perago.dev.record import SERVERS, Blocks, ServerName
from perago.dev.sources import Sources
from perago.dev.status import ServerStatus

__all__ = [
    "SERVERS",
    "Blocks",
    "ConductorEndpoint",
    "Instance",
    "LakeFSEndpoint",
    "S3Endpoint",
    "ServerName",
    "ServerStatus",
    "Sources",
    "instances",
    "start",
]
