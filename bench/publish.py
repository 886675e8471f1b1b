"""How long the visible part of an attempt takes under each fence, next to a merge alone."""

from __future__ import annotations

import statistics
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel

from bench.comparison import Comparison, Fact, Options, Ratio, Work
from bench.lakefs import BRANCH, Host, Server, serving
from perago import WorkspaceSpec, task
from perago.protocol.kinds import FenceKind
from perago.protocol.values import Staging
from perago.stores.lakefs import moves
from perago.stores.lakefs.installing import install_fence

EACH = 15
ALONE = "merge alone"
FENCES: tuple[FenceKind, ...] = ("head", "lineage", "hard")
_PHASES = ("second attempt fence", "publish")


class Turn(BaseModel):
    """What to write, so that every attempt changes something."""

    turn: str


class Nothing(BaseModel):
    """No result."""


def writer(fence: FenceKind) -> Callable[..., Nothing]:
    """Make a task that changes one small file under a fence."""

    @task(
        name=f"publish_{fence}",
        owner_email="bench@example.com",
        workspace=WorkspaceSpec(prefix="data", fence=fence),
    )
    def change(workspace: Path, params: Turn) -> Nothing:
        (workspace / "one.txt").write_text(params.turn)
        return Nothing()

    return change


class Publishing:
    """A branch that gets one publication after the other, and what each of them took."""

    def __init__(self, server: Server, fence: FenceKind) -> None:
        self._host: Host = server.host()
        self._repository = server.repository({"data/one.txt": b"one"})
        self._task = writer(fence)
        if fence == "hard":
            install_fence(server.store, self._repository, BRANCH)
        self._ref = server.store.head(self._repository, BRANCH).id
        self.seconds: list[float] = []

    def round(self) -> float:
        """Publish a few times; returns the median seconds of both phases."""
        for _ in range(EACH):
            given = {"turn": uuid.uuid4().hex}
            self._ref = self._host.attempt(self._task, self._repository, self._ref, given)
            phases = self._host.phases()
            self.seconds.append(sum(phases[name] for name in _PHASES))
        return statistics.median(self.seconds[-EACH:])

    def p99(self) -> float:
        """Return the slowest hundredth of all."""
        return statistics.quantiles(self.seconds, n=100)[-1]

    def close(self) -> None:
        """Forget it."""
        self._host.close()


@contextmanager
def comparison(_: Options) -> Iterator[Comparison]:
    """Publish one small change at a time, under each fence."""
    with serving() as server:
        lines = {fence: Publishing(server, fence) for fence in FENCES}
        contenders: dict[str, Work] = {fence: line.round for fence, line in lines.items()}
        contenders[ALONE] = _merges(server)

        def facts() -> Sequence[Fact]:
            return [Fact(f"publish p99 in ms, {name}", 1000 * lines[name].p99()) for name in lines]

        yield Comparison(
            name="publish",
            what="second fence, merge and verification of one small change, lakeFS",
            contenders=contenders,
            ratios=[
                Ratio("publish: head / merge alone", "head", ALONE),
                Ratio("publish: hard / head", "hard", "head"),
                Ratio("publish: lineage / head", "lineage", "head"),
            ],
            facts=facts,
        )
        for line in lines.values():
            line.close()


def _merges(server: Server) -> Work:
    """Merge by the same request and nothing else: the least that anybody can do."""
    repository = server.repository({"data/one.txt": b"one"})
    store = server.store

    def work() -> float:
        seconds: list[float] = []
        for _ in range(EACH):
            branch = Staging(repository, f"s{uuid.uuid4().hex[:12]}")
            store.open_staging(branch, store.head(repository, BRANCH).id)
            server.put(branch, f"data/{branch.branch}.txt")
            sealed = store.seal(branch, "one", {})
            body = {"message": "one", "squash_merge": True}
            began = time.perf_counter()
            store.client.ask(moves.merge(repository, sealed.commit, BRANCH, body))
            seconds.append(time.perf_counter() - began)
        return statistics.median(seconds)

    return work
