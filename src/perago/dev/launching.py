"""Bringing one server up, and being sure that it is the one that answers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from perago.dev.addresses import answers, is_free, reserved_port
from perago.dev.commands import last_line
from perago.dev.errors import ServerNotStartedError
from perago.dev.processes import Process, detach
from perago.dev.record import InstanceRecord, ServerName, ServerRecord
from perago.dev.servers import KINDS, Launch, ServerHome
from perago.dev.sources import Sources

_TRIES = 3
_STEP_SECONDS = 0.1
# Each of these programs reads its settings from the environment as well: a variable of the user's
# other server must not change ours.
_FOREIGN = ("LAKEFS_", "LAKECTL_", "VGW_", "ROOT_", "SPRING_", "SERVER_", "CONDUCTOR_", "PERAGO_")
Remember = Callable[[ServerRecord], None]


@dataclass(frozen=True, slots=True)
class Launcher:
    """Starts servers of one instance."""

    directory: Path
    sources: Sources

    def log(self, server: ServerName) -> Path:
        """Name the file a server's output goes to."""
        return self.directory / "logs" / f"{server}.log"

    def start(
        self, server: ServerName, words: list[str], instance: InstanceRecord, remember: Remember
    ) -> None:
        """Start a prepared server and wait until it answers.

        What was started is remembered at once, so that a command that dies while it waits leaves
        nothing behind that ``down`` does not know.
        """
        previous = instance.servers.get(server)
        preferred = previous.port if previous else 0
        for _ in range(_TRIES):
            with reserved_port(self.sources.cache.root / "locks", preferred) as port:
                seat = ServerHome(self.directory / server, port, instance)
                seat.folder()
                launch = KINDS[server].launch(words, seat)
                process = self._detached(server, launch, seat)
                remember(self._record(server, port, process))
                if self._comes_up(process, server, launch.health):
                    return
                # Another program took the port between our look and the server's.
                if is_free(port):
                    break
                preferred = 0
        raise ServerNotStartedError(
            f"{server} ended before it answered: {last_line(self.log(server))}",
            remedy=f"read {self.log(server)}",
        )

    def _detached(self, server: ServerName, launch: Launch, seat: ServerHome) -> Process:
        own = {key: text for key, text in os.environ.items() if not key.startswith(_FOREIGN)}
        environment = {**own, **launch.environment}
        return detach(launch.words, seat.directory, environment, self.log(server))

    def _record(self, server: ServerName, port: int, process: Process) -> ServerRecord:
        return ServerRecord(
            port=port,
            version=self.sources.version(KINDS[server].program),
            pid=process.pid,
            token=process.token,
            started_at=time.time(),
        )

    def _comes_up(self, process: Process, server: ServerName, health: str) -> bool:
        """Wait for an answer; False when the process ended instead."""
        limit = KINDS[server].start_seconds
        deadline = time.monotonic() + limit
        try:
            with self.sources.narrator.step(f"starting {server}") as step:
                while process.alive:
                    if answers(health):
                        return process.alive
                    if time.monotonic() >= deadline:
                        break
                    step.show(last_line(self.log(server)), 0)
                    time.sleep(_STEP_SECONDS)
                else:
                    return False
        except BaseException:
            process.kill()
            raise
        process.kill()
        raise ServerNotStartedError(
            f"{server} did not answer within {limit:.0f} seconds",
            remedy=f"read {self.log(server)}, and try again when the machine is less busy",
        )
