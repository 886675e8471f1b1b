"""A real lakeFS server, and worker hosts that run attempts on it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.places import temporary
from perago.app.engines import EngineFactory
from perago.attempt.lifecycle import run_attempt
from perago.attempt.services import AttemptServices
from perago.clock import SystemClock
from perago.dev import LakeFSEndpoint, Sources, start
from perago.history.attempts import attempt_history
from perago.history.event_log import AttemptJournal, EventLog
from perago.ports import Put
from perago.programs.running import ProgramRunner
from perago.protocol.paths import Selection
from perago.protocol.values import Attempt, Claim, Staging, WorkspaceInput
from perago.settings import LakeFSSettings
from perago.stores.lakefs import LakeFSStore
from perago.stores.lakefs.client import Ask
from perago.stores.lakefs.errors import Call
from perago.stores.lakefs.manifests import Manifests
from perago.tasks.declaration import definition_of
from perago.testing.broker import ScriptedBroker
from perago.transfer.cache import ContentCache
from perago.transfer.copying import entry_of
from perago.transfer.wire import path_of
from perago.workspace.attempt_dirs import LocalAttemptDirs
from perago.workspace.scan import Baseline, scan

BRANCH = "main"
# One line of the server's own statistics per kind of request and answer.
_COUNTED = re.compile(
    r'^(?:api|gateway)_request_duration_seconds_count\{.*operation="([^"]*)".*\} (\S+)$'
)


@dataclass(frozen=True)
class Server:
    """The server of one comparison and a directory for everything else."""

    lakefs: LakeFSEndpoint
    lakectl: Path
    root: Path
    store: LakeFSStore

    def settings(self) -> LakeFSSettings:
        """Say how a worker reaches it."""
        return LakeFSSettings(self.lakefs.endpoint, self.lakefs.access_key_id, self.lakefs.secret)

    def repository(self, files: Mapping[str, bytes] | None = None) -> str:
        """Make a repository whose branch holds these files."""
        name = f"bench-{uuid.uuid4().hex[:12]}"
        body = {
            "name": name,
            "storage_namespace": self.lakefs.storage_namespace(name),
            "default_branch": BRANCH,
        }
        ask = Ask("create repository", "POST", path_of("repositories"), Call.PRIVATE, body=body)
        self.store.client.ask(ask)
        if files:
            self.upload(name, files)
        return name

    def upload(self, repository: str, files: Mapping[str, bytes]) -> None:
        """Put files on the branch and commit them."""
        with TemporaryDirectory(dir=self.root) as temporary:
            fill(Path(temporary), files)
            self.send(repository, Path(temporary))

    def send(self, repository: str, directory: Path) -> None:
        """Put all files of a directory on the branch and commit them."""
        branch = Staging(repository, BRANCH)
        self.store.write(branch, puts_of(self.store, directory), [], lambda _: None)
        self.store.seal(branch, "given files", {})

    def put(self, branch: Staging, key: str) -> None:
        """Write one small object on a branch."""
        content = key.encode()
        with TemporaryDirectory(dir=self.root) as temporary:
            source = Path(temporary, "one")
            source.write_bytes(content)
            put = Put(key, entry_of(content, self.store.checksum), source)
            self.store.write(branch, [put], [], lambda _: None)

    def branch(self, repository: str) -> str:
        """Make a branch for somebody to upload to."""
        name = f"up-{uuid.uuid4().hex[:12]}"
        head = self.store.head(repository, BRANCH).id
        self.store.open_staging(Staging(repository, name), head)
        return name

    def run_lakectl(self, *words: str) -> None:
        """Run lakeFS's own client."""
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(self.root),
            "LAKECTL_SERVER_ENDPOINT_URL": self.lakefs.endpoint,
            "LAKECTL_CREDENTIALS_ACCESS_KEY_ID": self.lakefs.access_key_id,
            "LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY": self.lakefs.secret,
        }
        command = [str(self.lakectl), *words, "--no-progress"]
        subprocess.run(command, check=True, capture_output=True, env=environment)

    def requests(self) -> dict[str, int]:
        """Read how many requests the server has answered, by operation; it counts them itself."""
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(f"{self.lakefs.endpoint}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        found: dict[str, int] = {}
        for line in text.splitlines():
            counted = _COUNTED.match(line)
            if counted:
                found[counted[1]] = found.get(counted[1], 0) + int(float(counted[2]))
        return found

    def host(self) -> Host:
        """Make a host that has never seen anything."""
        return Host(self.settings(), self.root / f"host-{uuid.uuid4().hex[:8]}")


@dataclass
class Host:
    """One worker host: its cache, its manifests, its attempt directories."""

    settings: LakeFSSettings
    path: Path
    store: LakeFSStore = field(init=False)

    def __post_init__(self) -> None:
        self._cache = ContentCache(self.path / "cache", 20 << 30)
        manifests = Manifests(self.path / "manifests.sqlite")
        self.store = LakeFSStore(self.settings, self._cache, manifests)
        self._last = ""
        self._events = EventLog(self.path / "events.sqlite")

    def attempt(
        self, task: Callable[..., Any], repository: str, ref: str, params: Mapping[str, object]
    ) -> str:
        """Run one attempt; returns the commit it published."""
        definition = definition_of(task)
        attempt = Attempt(
            workflow_instance_id=str(uuid.uuid4()),
            task_id=str(uuid.uuid4()),
            retry_count=0,
            reference_task_name=definition.name,
            task_def_name=definition.name,
            seq=1,
        )
        workspace = WorkspaceInput(repository, BRANCH, "commit", ref)
        given = {"params": params, "workspace": workspace.as_json()}
        claim = Claim(attempt, given, uuid.uuid4().hex)
        self._last = claim.execution_id
        clock = SystemClock()
        services = AttemptServices(
            store=self.store,
            broker=ScriptedBroker(),
            attempt_dirs=LocalAttemptDirs(self.path / "rooms", "bench", clock),
            clock=clock,
            journal=AttemptJournal(self._events, claim, clock),
            engines=EngineFactory(),
            programs=ProgramRunner(),
        )
        outcome = run_attempt(claim, definition, services)
        published = outcome.output.get("workspace")
        if not outcome.completed or not isinstance(published, dict):
            raise SystemExit(outcome.reason)
        return str(published["ref"])

    def phases(self) -> dict[str, float]:
        """Say how long each phase of the last attempt took."""
        return attempt_history(self._events.of_execution(self._last)).state.seconds

    def settle(self) -> None:
        """Wait until the cache has all it was given."""
        with self._cache.reading(()):
            pass

    def close(self) -> None:
        """Forget everything."""
        self.store.close()
        self._events.close()
        shutil.rmtree(self.path, ignore_errors=True)


@contextmanager
def connect(endpoint: str, key: str, secret: str, root: Path) -> Iterator[Host]:
    """Be a host that has never seen anything, of a server that another process started."""
    host = Host(LakeFSSettings(endpoint, key, secret), root / f"host-{uuid.uuid4().hex[:8]}")
    try:
        yield host
    finally:
        host.close()


@contextmanager
def serving() -> Iterator[Server]:
    """Start a server for one comparison."""
    sources = Sources()
    with temporary() as root, start("bench", root, ["lakefs"], sources=sources) as instance:
        lakefs = instance.lakefs
        settings = LakeFSSettings(lakefs.endpoint, lakefs.access_key_id, lakefs.secret)
        # Seeding keeps nothing: no content of it may warm a host that is measured.
        nothing = ContentCache(root / "none", 0)
        store = LakeFSStore(settings, nothing, Manifests(root / "seed.sqlite"))
        yield Server(lakefs, sources.program("lakectl"), root, store)
        store.close()


def small_files(count: int, size: int = 4096, seed: int = 0) -> dict[str, bytes]:
    """Make so many different contents."""
    return {
        f"d{number % 20:02}/f{number:06}.bin": _content(seed << 32 | number, size)
        for number in range(count)
    }


def fill(directory: Path, files: Mapping[str, bytes]) -> None:
    """Write files to a directory."""
    for path, content in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_bytes(content)


def write_noise(path: Path, size: int) -> None:
    """Write a file of a size, another one each time; nothing on the way can make it smaller."""
    part = os.urandom(min(size, 1 << 20))
    with path.open("wb") as file:
        for number in range(size // len(part)):
            file.write(number.to_bytes(8) + part[8:])


def puts_of(store: LakeFSStore, directory: Path) -> list[Put]:
    """Read what a directory holds, as the diff of an attempt on nothing does."""
    found = scan(directory, Selection(), store.checksum, Baseline({}, {}, 0))
    return [Put(path, entry, directory / path) for path, entry in found.items()]


def _content(number: int, size: int) -> bytes:
    return (number.to_bytes(8) * (size // 8 + 1))[:size]
