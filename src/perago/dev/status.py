"""What is known about the servers of an instance without asking them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from perago.dev.addresses import HOST
from perago.dev.record import SERVERS, InstanceRecord, ServerName

State = Literal["running", "dead", "stopped"]


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """One line of ``perago dev status``."""

    server: ServerName
    state: State
    version: str
    port: int
    pid: int
    since: float
    memory_bytes: int

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"


def status_of(record: InstanceRecord) -> list[ServerStatus]:
    """Look at each server that was ever started; dead is what ended without being stopped."""
    found = []
    for server in SERVERS:
        known = record.servers.get(server)
        if known is None:
            continue
        alive = known.process.alive
        found.append(
            ServerStatus(
                server=server,
                state="running" if alive else "dead" if known.pid else "stopped",
                version=known.version,
                port=known.port,
                pid=known.pid,
                since=known.started_at,
                memory_bytes=known.process.memory() if alive else 0,
            )
        )
    return found
