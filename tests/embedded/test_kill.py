"""kill -9 at any instant leaves the old or the new state (V4, V5)."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

from perago.stores.embedded import EmbeddedStore
from tests import injection
from tests.embedded.contents import check, tree

RESTLESS = Path(__file__).with_name("restless.py")
KILLS = 30


def run_and_kill(root: Path, after_seconds: float) -> int:
    """Let a writer work for a moment and kill it; returns the last number it said."""
    with subprocess.Popen(
        [sys.executable, str(RESTLESS), str(root)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        said = [process.stdout.readline()]  # it works now
        time.sleep(after_seconds)  # any moment will do
        injection.inject("SIGKILL at a random moment", process.kill)
        said += process.stdout.read().splitlines()
    return int([line for line in said if line][-1])


def test_a_killed_writer_leaves_the_old_or_the_new_state(store: EmbeddedStore, root: Path) -> None:
    dice = random.Random(20240607)
    said = 0
    for _ in range(KILLS):
        said = run_and_kill(root, dice.uniform(0, 0.06))
        head = store.head("demo", "main")
        number = int(head.metadata["number"])
        assert number in {said, said + 1}
        published = tree(store, "demo", "main")
        files = {content for key, content in published.items() if key.startswith("f/")}
        assert files == {b"%d" % number * 1000}
        assert [key for key in published if key.startswith("old/")] == [f"old/{number}"]
        check(store)
    assert said >= KILLS
    for branch in store.branches("demo", hidden=True):
        if branch.hidden:
            store.delete_branch("demo", branch.name)
    store.collect(0)
    assert not list((root / "incoming").iterdir())
    check(store)
