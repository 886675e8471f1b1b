"""Bytes between a host that knows nothing and a lakeFS server: against every other client."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from random import Random

from bench.comparison import Comparison, Options, Ratio, Work
from bench.lakefs import BRANCH, Host, Server, fill, puts_of, serving, small_files
from bench.peer import CLIENTS, PERAGO, Peer, peer, s5cmd
from bench.places import apart
from perago.ports import Fetch
from perago.protocol.paths import Selection, plan_download
from perago.protocol.values import Staging

COUNT = 2000
MANY = 100
MIB = 1 << 20
PARALLEL = ("-r", "-p", "16")
VERIFIED = "lakectl, then MD5"
OURS, LAKECTL, PEER, COPY = "perago", "lakectl -p 16", "perago 0.6.1", "cp"
SDK, SPEC, S5CMD = "lakeFS SDK, 16 threads", "lakefs-spec", "s5cmd on the gateway"


class Race:
    """The directories and hosts of one round; every contender starts with empty hands."""

    def __init__(self, server: Server, repository: str, source: Path) -> None:
        self.server = server
        self.repository = repository
        self.source = source
        self._landing = server.root / "landing"
        self.to = self._landing / "first"
        self.head = server.store.head(repository, BRANCH).id
        self.branch = ""
        self.host: Host | None = None

    def reset(self) -> None:
        """Forget the last round, untimed."""
        self.land()
        if self.host is not None:
            self.host.close()
        self.host = self.server.host()
        self.branch = self.server.branch(self.repository)

    def land(self) -> None:
        """Choose where the next files go; many are left where they are, until the end."""
        if len(list(self.to.rglob("*"))) < MANY:
            shutil.rmtree(self.to, ignore_errors=True)
        self.to = apart(self._landing)

    def download(self) -> None:
        """List, fetch and verify, as the download phase of an attempt does.

        Small contents are in the cache then; big ones are copied to it beside what comes next.
        """
        store = self._host().store
        manifest = plan_download(Selection(), store.listing(self.repository, self.head, ""))
        wanted = [Fetch(path, entry, self.to / path) for path, entry in manifest.items()]
        store.fetch(self.repository, self.head, wanted, lambda _: None)

    def download_kept(self) -> None:
        """Wait for the cache as well, as only the next download of the host does."""
        self.download()
        self.settle()

    def settle(self) -> None:
        """Wait until the cache has all it was given."""
        self._host().settle()

    def stage(self) -> None:
        """Read what is there, make a branch, send, commit: the diff and the stage phase."""
        store = self._host().store
        puts = puts_of(store, self.source)
        staging = Staging(self.repository, f"staged-{self._host().path.name}")
        store.open_staging(staging, self.head)
        store.write(staging, puts, [], lambda _: None)
        store.seal(staging, "staged", {})

    def lakectl_download(self) -> None:
        """Have lakectl do it; it verifies nothing and keeps nothing."""
        address = f"lakefs://{self.repository}/{self.head}/"
        self.server.run_lakectl("fs", "download", address, str(self.to), *PARALLEL)

    def lakectl_verified(self) -> None:
        """Have lakectl do it and look at what came, as every download here does (D3)."""
        self.lakectl_download()
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(_md5, self.to.iterdir()))

    def lakectl_upload(self) -> None:
        """Have lakectl do it; it commits nothing."""
        address = f"lakefs://{self.repository}/{self.branch}/"
        self.server.run_lakectl("fs", "upload", address, "-s", str(self.source), *PARALLEL)

    def s5cmd_download(self) -> None:
        """Have s5cmd do it, through the gateway; it verifies nothing and keeps nothing."""
        self.to.mkdir(parents=True)
        s5cmd(self.server, "cp", f"s3://{self.repository}/{self.head}/*", f"{self.to}/")

    def s5cmd_upload(self) -> None:
        """Have s5cmd do it, through the gateway; it commits nothing."""
        s5cmd(self.server, "cp", f"{self.source}/", f"s3://{self.repository}/{self.branch}/")

    def peer(self, process: Peer, what: str) -> Work:
        """Have another one do it."""

        def work() -> None:
            process.ask(
                what,
                directory=str(self.to if what.endswith("download") else self.source),
                repository=self.repository,
                branch=self.branch,
                ref=self.head,
            )

        return work

    def _host(self) -> Host:
        if self.host is None:
            raise RuntimeError("reset comes first")
        return self.host


@contextmanager
def download(options: Options) -> Iterator[Comparison]:
    """Two thousand small files to a host that knows nothing."""
    with _race(small_files(COUNT), options) as (race, peers):
        contenders: dict[str, Work] = {OURS: race.download, LAKECTL: race.lakectl_download}
        ratios = [Ratio("download: perago / lakectl", OURS, LAKECTL, at_most=1.1)]
        if peers:
            perago, clients = peers
            contenders |= {
                S5CMD: race.s5cmd_download,
                SDK: race.peer(clients, "sdk-download"),
                SPEC: race.peer(clients, "spec-download"),
                PEER: race.peer(perago, "download"),
            }
            ratios += [
                Ratio("download: s5cmd / perago", S5CMD, OURS),
                Ratio("download: lakeFS SDK / perago", SDK, OURS, at_least=1),
                Ratio("download: lakefs-spec / perago", SPEC, OURS, at_least=1),
                Ratio("download: 0.6.1 / perago", PEER, OURS, at_least=4),
            ]
        yield Comparison(
            name="download",
            what=f"{COUNT} objects of 4 KiB, nothing cached",
            contenders=contenders,
            ratios=ratios,
            reset=race.reset,
            slow={PEER: 3, SPEC: 2},
        )


@contextmanager
def stage(options: Options) -> Iterator[Comparison]:
    """Two thousand small new files to a staging branch."""
    with _race({"seed": b"seed"}, options) as (race, peers):
        fill(race.source, small_files(COUNT, seed=1))
        contenders: dict[str, Work] = {OURS: race.stage, LAKECTL: race.lakectl_upload}
        ratios = [Ratio("stage: perago / lakectl", OURS, LAKECTL, at_most=1.1)]
        if peers:
            perago, clients = peers
            contenders |= {
                S5CMD: race.s5cmd_upload,
                SDK: race.peer(clients, "sdk-upload"),
                SPEC: race.peer(clients, "spec-upload"),
                PEER: race.peer(perago, "stage"),
            }
            ratios += [
                Ratio("stage: s5cmd / perago", S5CMD, OURS),
                Ratio("stage: lakeFS SDK / perago", SDK, OURS, at_least=1),
                Ratio("stage: lakefs-spec / perago", SPEC, OURS, at_least=1),
                Ratio("stage: 0.6.1 / perago", PEER, OURS, at_least=15),
            ]
        yield Comparison(
            name="stage",
            what=f"{COUNT} new files of 4 KiB: scanned, sent, committed (lakectl: sent)",
            contenders=contenders,
            ratios=ratios,
            reset=race.reset,
            slow={PEER: 2, SPEC: 1},
        )


@contextmanager
def big(options: Options) -> Iterator[Comparison]:
    """Eight files of 32 MiB, both ways."""
    files = {f"big{number}.bin": _noise(number, 32 * MIB) for number in range(8)}
    with _race(files, Options(options.counts, options.gib, peer=False)) as (race, _):
        fill(race.source, files)
        up = Race(race.server, race.server.repository({"seed": b"seed"}), race.source)

        def reset() -> None:
            race.reset()
            up.reset()

        yield Comparison(
            name="big",
            what="8 files of 32 MiB, nothing cached",
            contenders={
                f"{OURS} down": race.download,
                f"{OURS} down, cache filled": race.download_kept,
                f"{LAKECTL} down": race.lakectl_download,
                VERIFIED: race.lakectl_verified,
                f"{OURS} up": up.stage,
                f"{LAKECTL} up": up.lakectl_upload,
                COPY: lambda: _copy(race.source, race.to),
            },
            ratios=[
                Ratio("big down: perago / lakectl", f"{OURS} down", f"{LAKECTL} down", at_most=1.1),
                Ratio("big up: perago / lakectl", f"{OURS} up", f"{LAKECTL} up", at_most=1.1),
                Ratio("big down: perago / lakectl, then MD5", f"{OURS} down", VERIFIED),
                Ratio(
                    "big down, cache filled: perago / lakectl",
                    f"{OURS} down, cache filled",
                    f"{LAKECTL} down",
                ),
                Ratio("big down: perago / cp", f"{OURS} down", COPY),
                Ratio("big up: perago / cp", f"{OURS} up", COPY),
            ],
            reset=reset,
        )


@contextmanager
def _race(
    files: dict[str, bytes], options: Options
) -> Iterator[tuple[Race, tuple[Peer, Peer] | None]]:
    with ExitStack() as stack:
        server = stack.enter_context(serving())
        peers = None
        if options.peer:
            perago, clients = (peer(server, each) for each in (PERAGO, CLIENTS))
            peers = stack.enter_context(perago), stack.enter_context(clients)
        yield Race(server, server.repository(files), server.root / "source"), peers


def _noise(seed: int, size: int) -> bytes:
    return Random(seed).randbytes(size)


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, partial(hashlib.md5, usedforsecurity=False)).hexdigest()


def _copy(source: Path, to: Path) -> None:
    shutil.copytree(source, to)
