"""One big file up and down: how much memory the worker takes for it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.comparison import Comparison, Curve, Fact, Options, Work
from bench.lakefs import BRANCH, serving

LIMIT_MB = 300
WAYS = {"up": "written", "down": "read"}


@contextmanager
def comparison(options: Options) -> Iterator[Comparison]:
    """Run each way in a worker of its own and ask the system for its peak."""
    peaks: dict[str, float] = {}
    with serving() as server:
        asked = {
            "endpoint": server.lakefs.endpoint,
            "key": server.lakefs.access_key_id,
            "secret": server.lakefs.secret,
            "root": str(server.root),
        }
        repositories = {gib: server.repository({"seed": b"seed"}) for gib in options.gib}

        def run(way: str, gib: float) -> float:
            repository = repositories[gib]
            ref = server.store.head(repository, BRANCH).id
            size = int(gib * (1 << 30))
            words = {**asked, "do": way, "repository": repository, "ref": ref, "size": size}
            done = subprocess.run(
                [sys.executable, "-m", "bench.memory_worker", json.dumps(words)],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
                cwd=Path(__file__).parent.parent,
            )
            told = json.loads(done.stdout)
            peaks[_title(way, gib)] = told["peak_mb"]
            return float(told["seconds"])

        def worker(way: str, gib: float) -> Work:
            def work() -> float:
                if way == "down" and _title("up", gib) not in peaks:
                    run("up", gib)  # Whose turn comes later: there must be something to read.
                return run(way, gib)

            return work

        runs = [(way, gib) for gib in options.gib for way in WAYS]
        yield Comparison(
            name="memory",
            what="one file of that size: an attempt that writes it, one that reads it",
            contenders={_title(*each): worker(*each) for each in runs},
            ratios=[],
            slow={_title(*each): 1 for each in runs},
            curve=Curve("GiB", {_title(way, gib): (WAYS[way], gib) for way, gib in runs}),
            facts=lambda: [
                Fact(f"memory: MB at the peak, {what}", peak, at_most=LIMIT_MB)
                for what, peak in peaks.items()
            ],
        )


def _title(way: str, gib: float) -> str:
    return f"{WAYS[way]}, {gib:g} GiB"
