"""Several servers that belong together, under one name and in one directory."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from perago.dev.endpoints import (
    ConductorEndpoint,
    LakeFSEndpoint,
    S3Endpoint,
    conductor_of,
    lakefs_of,
    s3_of,
    variables,
)
from perago.dev.errors import NotRunningError
from perago.dev.launching import Launcher
from perago.dev.record import (
    PRIVATE_DIRECTORY,
    SERVERS,
    Blocks,
    InstanceRecord,
    ServerName,
    ServerRecord,
    load,
    save,
    write_private,
)
from perago.dev.servers import KINDS
from perago.dev.shell import link_tools, tools_in
from perago.dev.sources import Sources
from perago.dev.status import ServerStatus, status_of
from perago.errors import UsageError
from perago.filesystem import home
from perago.process.lock import FileLock

USUAL: tuple[ServerName, ...] = ("lakefs", "conductor")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,40}")
_GRACE_SECONDS = 60.0
_LOCK_SECONDS = 900.0


class Instance:
    """Real servers for development and tests.

    The servers outlive this object; as a context manager it stops them at the end. Stopping keeps
    data, keys and logs, so that the next start goes on with them.
    """

    def __init__(self, name: str, home: Path, sources: Sources | None = None) -> None:
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} cannot name an instance",
                remedy="use up to 41 small letters, digits, '-' and '_', a letter or digit first",
            )
        self.name = name
        self.directory = home.absolute() / "dev" / name
        self._sources = sources or Sources()
        self._launcher = Launcher(self.directory, self._sources)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file.exists():  # It may have been purged.
            self.stop()

    # --- what it is -------------------------------------------------------------------------

    @property
    def record(self) -> InstanceRecord:
        """Read what is known now: another process may have changed it."""
        found = load(self._file)
        if found is None:
            raise NotRunningError(
                f"there is no instance {self.name!r} in {self.directory.parent}",
                remedy="start one with 'perago dev up', or change to the directory it belongs to",
            )
        return found

    @property
    def lakefs(self) -> LakeFSEndpoint:
        return lakefs_of(self.record)

    @property
    def conductor(self) -> ConductorEndpoint:
        return conductor_of(self.record)

    @property
    def s3(self) -> S3Endpoint:
        return s3_of(self.record)

    @property
    def environment(self) -> Path:
        """Name the file with the settings of a worker for this instance, as KEY=value lines."""
        return self.directory / "env"

    @property
    def tools(self) -> Path:
        """Name the directory with the tools for people, such as lakectl; it may be missing."""
        return self.directory / "bin"

    def log(self, server: ServerName) -> Path:
        """Name the log of a server."""
        return self._launcher.log(server)

    def status(self) -> list[ServerStatus]:
        """Look at each server."""
        return status_of(self.record)

    # --- what can be done with it -----------------------------------------------------------

    def up(self, servers: Collection[ServerName] = USUAL, blocks: Blocks = "local") -> None:
        """Make these servers run; one that runs already is left alone."""
        wanted = [s for s in SERVERS if s in servers or (s == "s3" and blocks == "s3")]
        home.claim(self.directory.parent.parent)  # Before the lock, which would make it for all.
        with self._locked():
            record = self._prepared(blocks)
            missing = [server for server in wanted if not _runs(record, server)]
            # What takes minutes is done for all of them before the first one starts.
            words = {server: KINDS[server].prepare(self._sources) for server in missing}
            for server in missing:
                self._start(server, words[server])
            self._write_environment(self.record)
            if "lakefs" in missing or ("lakefs" in wanted and not tools_in(self.tools)):
                link_tools(self.tools, self._sources)

    def find_tools(self) -> None:
        """Look for the tools again: they may have been built since."""
        with self._locked():
            link_tools(self.tools, self._sources)

    def stop(self) -> None:
        """Stop every server, the last one started first."""
        known = self.record.servers
        with self._locked():
            for server in reversed(SERVERS):
                if server in known:
                    self._stop(server)
            self.environment.unlink(missing_ok=True)

    def restart(self, server: ServerName) -> None:
        """Stop a server and start it again on the same port, with the same data."""
        with self._locked():
            self._known(server)
            words = KINDS[server].prepare(self._sources)
            self._stop(server)
            self._start(server, words)
            self._write_environment(self.record)

    def kill(self, server: ServerName) -> None:
        """End a server as a crash would."""
        self._known(server).process.kill()

    def purge(self) -> None:
        """Stop every server and remove all that the instance ever wrote."""
        self.stop()
        with self._locked():
            shutil.rmtree(self.directory)

    # --- its own ----------------------------------------------------------------------------

    @property
    def _file(self) -> Path:
        return self.directory / "instance.json"

    def _prepared(self, blocks: Blocks) -> InstanceRecord:
        for folder in (self.directory.parent, self.directory, self.directory / "logs"):
            folder.mkdir(parents=True, exist_ok=True, mode=PRIVATE_DIRECTORY)
        record = load(self._file) or InstanceRecord(name=self.name, blocks=blocks)
        if record.blocks != blocks and "lakefs" in record.servers:
            raise UsageError(
                f"instance {self.name} keeps its blocks on {record.blocks}, not on {blocks}",
                remedy=f"add --blocks {record.blocks}, or choose another --name",
            )
        record = record.model_copy(update={"blocks": blocks})
        save(self._file, record)
        return record

    def _start(self, server: ServerName, words: list[str]) -> None:
        record = self.record

        def remember(known: ServerRecord) -> None:
            save(self._file, record.having(server, known))

        self._launcher.start(server, words, record, remember)

    def _known(self, server: ServerName) -> ServerRecord:
        record = self.record
        if server not in record.servers:
            raise NotRunningError(
                f"instance {self.name} has no {server}",
                remedy=f"it has {', '.join(record.servers) or 'no server at all'}",
            )
        return record.servers[server]

    def _stop(self, server: ServerName) -> None:
        known = self._known(server)
        known.process.stop(_GRACE_SECONDS)
        stopped = known.model_copy(update={"pid": 0, "token": ""})
        save(self._file, self.record.having(server, stopped))

    def _write_environment(self, record: InstanceRecord) -> None:
        lines = (f"{key}={value}\n" for key, value in variables(record).items())
        write_private(self.environment, "".join(lines))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with FileLock(self.directory.parent / f".{self.name}.lock") as lock:
            if not lock.acquire(_LOCK_SECONDS):
                raise UsageError(
                    f"another command is working on instance {self.name}",
                    remedy="wait for it, or choose another --name",
                )
            yield


def _runs(record: InstanceRecord, server: ServerName) -> bool:
    return server in record.servers and record.servers[server].process.alive


def start(
    name: str,
    home: Path,
    servers: Collection[ServerName] = USUAL,
    *,
    blocks: Blocks = "local",
    sources: Sources | None = None,
) -> Instance:
    """Return a running instance; what it lacks is built or fetched first."""
    instance = Instance(name, home, sources)
    instance.up(servers, blocks)
    return instance


def instances(home: Path) -> list[str]:
    """List the names of the instances of a home, running or not."""
    return sorted(file.parent.name for file in (home / "dev").glob("*/instance.json"))
