"""Fence ``hard`` with real processes: exactly one winner per round (K3, P8)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from perago.stores.embedded import EmbeddedStore
from tests import injection
from tests.embedded.contents import check, tree
from tests.patience import LIMIT

RACER = Path(__file__).with_name("racer.py")


@contextmanager
def racers(root: Path, names: list[str], rounds: int) -> Iterator[list[subprocess.Popen[str]]]:
    started = [
        subprocess.Popen(
            [sys.executable, str(RACER), str(root), name, str(rounds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        for name in names
    ]
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate(timeout=LIMIT)


def hear(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(processes: Iterable[subprocess.Popen[str]]) -> None:
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")


@pytest.mark.parametrize(("names", "rounds"), [(["w1", "w2"], 1000), (["w1", "w2", "w3"], 50)])
def test_k3_exactly_one_winner_per_round(
    store: EmbeddedStore, root: Path, names: list[str], rounds: int
) -> None:
    winners: list[str] = []
    with racers(root, names, rounds) as running:
        for number in range(rounds):
            assert [hear(process) for process in running] == ["ready"] * len(names)
            turn = number % len(names)  # nobody is always told first
            order = (*running[turn:], *running[:turn])
            injection.inject(f"{len(names)} publish at once", partial(tell, order))
            results = [hear(process) for process in running]
            assert sorted(results) == ["lost"] * (len(names) - 1) + ["won"]
            winners.append(names[results.index("won")])
    history = list(store.history("demo", "main"))[:rounds]
    assert [commit.metadata["workflow"] for commit in reversed(history)] == winners
    assert set(winners) == set(names)
    published = tree(store, "demo", "main")
    assert [published[f"rounds/{n:04d}"].decode() for n in range(rounds)] == winners
    assert len(store.branches("demo", hidden=True)) == 1
    if rounds < 100:  # every tree of a long history is read
        check(store)
