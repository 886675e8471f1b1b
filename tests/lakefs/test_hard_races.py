"""Sixteen publishers at once on a real server: what each fence lets land (K1, K3, P8, V1, V3).

``PERAGO_RACE_ROUNDS`` says how often; 50 is what the documentation speaks of. A round takes the
server about five seconds: whoever loses the update of a branch waits there before it tries again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from perago.dev import LakeFSEndpoint, start
from perago.errors import LostRaceError, PeragoError
from perago.ports import Publication, Published, Put
from perago.protocol.kinds import FenceKind
from perago.protocol.publication import Merge, Relocate, Replace, Write, refuse_visible
from perago.protocol.values import Staging
from perago.stores.lakefs.client import Ask
from perago.stores.lakefs.errors import Call
from perago.stores.lakefs.installing import install_fence
from perago.transfer.wire import path_of
from tests import injection, lakefs_kv
from tests.contract.backend import entry_of
from tests.lakefs_lab import ArrangedLakeFS, new_name
from tests.patience import LIMIT, TEST_SECONDS

RACERS = 16
ROUNDS = int(os.environ.get("PERAGO_RACE_ROUNDS", "3"))
SOFT_ROUNDS = max(1, ROUNDS // 10)
"""What a weaker fence lets happen shows in the first round; the others are to be sure."""

pytestmark = pytest.mark.timeout(TEST_SECONDS + 20 * ROUNDS)


class Track:
    """One repository, sixteen staged commits on A, and an abandoned publication H of A."""

    def __init__(self, endpoint: LakeFSEndpoint, place: Path, *, fenced: bool) -> None:
        self.store = ArrangedLakeFS(endpoint, place / "store")
        self.place = place
        self.fenced = fenced
        self.repository = new_name()
        self.store.create_repository(self.repository)
        if fenced:
            install_fence(self.store, self.repository, "main")
        self.store.put(self.repository, "main", "ws/given", b"given")
        self.a = self.store.commit_branch(self.repository, "main", "given").id
        self.staged = [self.stage(f"racer-{number}") for number in range(RACERS)]
        fence: FenceKind = "hard" if fenced else "head"
        self.h = self.apply(Merge(self.a, self.stage("abandoned")), fence).ref
        self.pool = ThreadPoolExecutor(RACERS)

    def stage(self, name: str) -> str:
        """Write a file that nobody else writes; under the hard fence also one that all write."""
        staging = Staging(self.repository, f"perago-staging-{name}")
        self.store.open_staging(staging, self.a)
        file = self.place / name
        file.write_text(name)
        entry = entry_of(self.store, name.encode())
        keys = [f"ws/{name}", "ws/out"] if self.fenced else [f"ws/{name}"]
        puts = [Put(key, entry, file) for key in keys]
        self.store.write(staging, puts, (), lambda _: None)
        return self.store.seal(staging, name, {"perago.execution_id": name}).commit

    def apply(self, decision: Write, fence: FenceKind, name: str = "") -> Published:
        said = {"perago.execution_id": name, "perago.expected_head": decision.head}
        where = self.repository, "main"
        return self.store.apply(Publication(*where, decision, fence, "race", said, LIMIT))

    def move(self, ref: str) -> None:
        """Put the branch where a round begins."""
        path = path_of("repositories", self.repository, "branches", "main", "hard_reset")
        self.store.client.ask(Ask("arrange", "PUT", path, Call.PRIVATE, query={"ref": ref}))

    def race(
        self, start: str, decision: Callable[[str], Write], fence: FenceKind
    ) -> list[tuple[Write, Published | PeragoError]]:
        """Let all sixteen publish on one head at the same moment."""
        self.move(start)
        ready = threading.Barrier(RACERS)

        def publish(number: int) -> tuple[Write, Published | PeragoError]:
            mine = decision(self.staged[number])
            ready.wait(LIMIT)
            try:
                return mine, self.apply(mine, fence, f"racer-{number}")
            except PeragoError as error:
                return mine, error

        ends: list[tuple[Write, Published | PeragoError]] = []
        together = partial(self.pool.map, publish, range(RACERS))
        injection.inject(f"{RACERS} publish at once", lambda: ends.extend(together()))
        return ends

    def history(self) -> list[str]:
        """Walk the branch down to A, newest first."""
        found = []
        for commit in self.store.history(self.repository, "main"):
            if commit.id == self.a:
                break
            found.append(commit.id)
        return found

    def close(self) -> None:
        self.pool.shutdown()
        self.store.close()


@pytest.fixture
def fenced(lakefs_server: LakeFSEndpoint, tmp_path: Path) -> Iterator[Track]:
    track = Track(lakefs_server, tmp_path, fenced=True)
    yield track
    track.close()


@pytest.fixture
def soft(lakefs_server: LakeFSEndpoint, tmp_path: Path) -> Iterator[Track]:
    track = Track(lakefs_server, tmp_path, fenced=False)
    yield track
    track.close()


def assert_one_landed(track: Track, ends: list[tuple[Write, Published | PeragoError]]) -> None:
    """V1, V2, V3: one published, its commit is the head on A, all others were told they lost."""
    won = [(decision, end) for decision, end in ends if isinstance(end, Published)]
    lost = [end for _, end in ends if isinstance(end, LostRaceError)]
    assert (len(won), len(lost)) == (1, RACERS - 1), ends
    ((decision, published),) = won
    assert published.fence == "hard"
    head = track.store.head(track.repository, "main")
    assert refuse_visible(decision, published.ref, head) is None
    assert track.history() == [published.ref]
    source = getattr(decision, "source", track.a)
    assert not track.store.diff(track.repository, source, head.id, "")


def test_k3_of_sixteen_merges_exactly_one_lands_in_every_round(fenced: Track) -> None:
    for _ in range(ROUNDS):
        ends = fenced.race(fenced.a, lambda staged: Merge(fenced.a, staged), "hard")
        assert_one_landed(fenced, ends)


@pytest.fixture(scope="module")
def lakefs_on_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LakeFSEndpoint]:
    """Give a lakeFS that keeps its metadata in PostgreSQL, which settles races in its own way."""
    home = tmp_path_factory.mktemp("lakefs")
    with lakefs_kv.kept_in("postgres"), start("postgres", home, ["lakefs"]) as instance:
        lakefs_kv.set_up(instance.lakefs)
        yield instance.lakefs


def test_k3_of_sixteen_exactly_one_lands_on_postgresql(
    lakefs_on_postgres: LakeFSEndpoint, tmp_path: Path
) -> None:
    track = Track(lakefs_on_postgres, tmp_path, fenced=True)
    assert_one_landed(track, track.race(track.a, lambda staged: Merge(track.a, staged), "hard"))
    assert_one_landed(track, track.race(track.h, lambda staged: Replace(track.h, staged), "hard"))
    track.close()


def test_k3_of_sixteen_replacements_exactly_one_lands_in_every_round(fenced: Track) -> None:
    for _ in range(ROUNDS):
        ends = fenced.race(fenced.h, lambda staged: Replace(fenced.h, staged), "hard")
        assert_one_landed(fenced, ends)


def test_n2_of_replacements_and_a_relocation_exactly_one_lands(fenced: Track) -> None:
    chosen = fenced.staged[0]

    def decision(staged: str) -> Write:
        if staged == chosen:
            return Relocate(fenced.h, fenced.a)
        return Replace(fenced.h, staged)

    for _ in range(max(ROUNDS // 3, 2)):
        ends = fenced.race(fenced.h, decision, "hard")
        won = [(mine, end.ref) for mine, end in ends if isinstance(end, Published)]
        ((mine, ref),) = won
        assert fenced.store.head(fenced.repository, "main").id == ref
        assert fenced.history() == ([] if isinstance(mine, Relocate) else [ref])


def test_k1_head_lets_several_merges_land_and_calls_at_most_one_a_success(soft: Track) -> None:
    """All that the server has patience for land, one on the other: a union nobody has decided."""
    for _ in range(SOFT_ROUNDS):
        ends = soft.race(soft.a, lambda staged: Merge(soft.a, staged), "head")
        landed = [(mine, end) for mine, end in ends if isinstance(end, Published)]
        assert len(landed) > 1
        assert set(soft.history()) == {end.ref for _, end in landed}
        head = soft.store.head(soft.repository, "main")
        seen = [mine for mine, end in landed if refuse_visible(mine, end.ref, head) is None]
        assert len(seen) <= 1


def test_k1_head_lets_all_replacements_be_made_and_the_last_one_stays(soft: Track) -> None:
    for _ in range(SOFT_ROUNDS):
        ends = soft.race(soft.h, lambda staged: Replace(soft.h, staged), "head")
        made = [end.ref for _, end in ends if isinstance(end, Published)]
        assert len(made) > 1  # Each was told that it had replaced H; only the last one has.
        (visible,) = soft.history()
        assert visible in made
