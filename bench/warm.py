"""An attempt on a host that has seen its input: it should cost what its change costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from pydantic import BaseModel

from bench.comparison import Comparison, Curve, Fact, Options, Ratio, Work
from bench.lakefs import BRANCH, Host, Server, serving, small_files
from bench.peer import Peer, peer
from perago import WorkspaceSpec, task

COUNT = 2000
SIZE = 4096
CHANGED = 20
OURS, PEER = "perago", "perago 0.6.1"
STEPS = 10
ONE = 0.01
SHARES = {0.0: None, ONE: 50.0, 0.1: None, 1.0: None}
"""How much an attempt changes, and how much faster than 0.6.1 it is meant to be at least."""


class Turn(BaseModel):
    """How many files to change, and to what."""

    turn: int
    changed: int
    size: int


class Nothing(BaseModel):
    """No result."""


@task(name="change", owner_email="bench@example.com", workspace=WorkspaceSpec())
def change(workspace: Path, params: Turn) -> Nothing:
    """Change the first files."""
    files = sorted(path for path in workspace.rglob("*") if path.suffix == ".bin")
    for path in files[: params.changed]:
        path.write_bytes((params.turn.to_bytes(8) * (params.size // 8 + 1))[: params.size])
    return Nothing()


class Line:
    """One repository that grows by one commit per attempt."""

    def __init__(
        self, server: Server, count: int, size: int = SIZE, changed: int = CHANGED
    ) -> None:
        self.server = server
        self.repository = server.repository(small_files(count, size))
        self.ref = server.store.head(self.repository, BRANCH).id
        self.size = size
        self.changed = changed
        self.turn = 1 << 40

    def ours(self, host: Host) -> None:
        """Run one attempt here."""
        self.ref = host.attempt(change, self.repository, self.ref, self._params())

    def peer(self, process: Peer) -> None:
        """Run one attempt of 0.6.1."""
        self.ref = process.ask(
            "attempt",
            directory=str(self.server.root / "peer"),
            repository=self.repository,
            branch=BRANCH,
            ref=self.ref,
            params=self._params(),
        )

    def _params(self) -> dict[str, object]:
        self.turn += 1
        return {"turn": self.turn, "changed": self.changed, "size": self.size}


@contextmanager
def attempt(options: Options) -> Iterator[Comparison]:
    """One attempt, warm, by the share of its files that it changes."""
    with ExitStack() as stack:
        server = stack.enter_context(serving())
        process = stack.enter_context(peer(server)) if options.peer else None
        contenders: dict[str, Work] = {}
        ratios, slow = [], {}
        hosts: dict[float, Host] = {}
        for share, at_least in SHARES.items():
            changed = round(share * COUNT)
            host = hosts[share] = server.host()
            stack.callback(host.close)
            ours, theirs = f"{OURS}, {share:.0%}", f"{PEER}, {share:.0%}"
            contenders[ours] = partial(Line(server, COUNT, changed=changed).ours, host)
            if process:
                contenders[theirs] = partial(Line(server, COUNT, changed=changed).peer, process)
                name = f"attempt, {share:.0%} changed: 0.6.1 / perago"
                ratios.append(Ratio(name, theirs, ours, at_least=at_least))
                slow[theirs] = 2 if at_least else 1
        yield Comparison(
            name="attempt-lakefs",
            what=f"{COUNT} files of {SIZE} bytes, some changed, lakeFS, warm host",
            contenders=contenders,
            ratios=ratios,
            slow=slow,
            facts=lambda: [
                Fact(f"ms in {phase}, 1 % changed", seconds * 1000)
                for phase, seconds in hosts[ONE].phases().items()
            ],
        )


@contextmanager
def chain(options: Options) -> Iterator[Comparison]:
    """Ten steps one after the other, each on the output of the one before."""
    with ExitStack() as stack:
        server = stack.enter_context(serving())
        line = Line(server, COUNT)
        late: list[int] = []

        def ours() -> None:
            host = server.host()
            line.ours(host)
            before = _downloads(server)
            for _ in range(STEPS - 1):
                line.ours(host)
            late.append(_downloads(server) - before)
            host.close()

        contenders: dict[str, Work] = {OURS: ours}
        ratios = []
        if options.peer:
            process, other = stack.enter_context(peer(server)), Line(server, COUNT)

            def theirs() -> None:
                for _ in range(STEPS):
                    other.peer(process)

            contenders[PEER] = theirs
            ratios.append(Ratio("chain: 0.6.1 / perago", PEER, OURS, at_least=50))
        yield Comparison(
            name="chain",
            what=f"{STEPS} steps on a new host, {COUNT} files, {CHANGED} changed by each",
            contenders=contenders,
            ratios=ratios,
            slow={PEER: 1},
            facts=lambda: [Fact("chain: downloads after step 1", max(late), at_most=0)],
        )


@contextmanager
def requests(options: Options) -> Iterator[Comparison]:
    """Attempts on ever more files, the same few changed."""
    with ExitStack() as stack:
        server = stack.enter_context(serving())
        counted: dict[int, int] = {}
        hosts: dict[int, Host] = {}
        for count in options.counts:
            hosts[count] = server.host()
            stack.callback(hosts[count].close)
        lines = {count: Line(server, count, size=64) for count in options.counts}

        def contender(count: int) -> Callable[[], None]:
            def work() -> None:
                before = sum(server.requests().values())
                lines[count].ours(hosts[count])
                counted[count] = sum(server.requests().values()) - before

            return work

        def facts() -> Sequence[Fact]:
            limit = 12 + CHANGED
            return [
                Fact(f"requests: attempt on {count} files", requests, at_most=limit)
                for count, requests in counted.items()
            ] + [
                Fact(f"µs a file in {phase}, {count} files", seconds / count * 1e6)
                for count, host in hosts.items()
                for phase, seconds in host.phases().items()
                if seconds / count > 1e-6
            ]

        yield Comparison(
            name="requests",
            what=f"warm attempts, {CHANGED} files changed, of so many",
            contenders={f"{count} files": contender(count) for count in options.counts},
            ratios=[],
            facts=facts,
            curve=Curve(
                "files", {f"{count} files": ("attempt", float(count)) for count in options.counts}
            ),
        )


def _downloads(server: Server) -> int:
    """Count what brought the bytes of an object."""
    wanted = {"getobject", "get_object"}
    return sum(count for name, count in server.requests().items() if name.lower() in wanted)
