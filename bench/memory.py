"""One big file up and down: how much memory the worker takes for it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.comparison import Comparison, Fact, Options, Work
from bench.lakefs import BRANCH, serving

MIB = 1 << 20
LIMIT_MB = 300


@contextmanager
def comparison(options: Options) -> Iterator[Comparison]:
    """Run each way in a worker of its own and ask the system for its peak."""
    size = int(options.gib * (1 << 30))
    peaks: dict[str, float] = {}
    with serving() as server:
        repository = server.repository({"seed": b"seed"})
        refs = [server.store.head(repository, BRANCH).id]
        asked = {
            "endpoint": server.lakefs.endpoint,
            "key": server.lakefs.access_key_id,
            "secret": server.lakefs.secret,
            "repository": repository,
            "size": size,
        }

        def worker(what: str) -> Work:
            def work() -> None:
                words = {**asked, "do": what, "ref": refs[-1], "root": str(server.root)}
                done = subprocess.run(
                    [sys.executable, "-m", "bench.memory_worker", json.dumps(words)],
                    check=True,
                    stdout=subprocess.PIPE,
                    text=True,
                    cwd=Path(__file__).parent.parent,
                )
                told = json.loads(done.stdout)
                peaks[what] = max(told["peak_mb"], peaks.get(what, 0.0))
                if told["ref"]:
                    refs.append(told["ref"])

            return work

        yield Comparison(
            name="memory",
            what=f"one file of {options.gib:g} GiB, an attempt that writes it, one that reads it",
            contenders={"up": worker("up"), "down": worker("down")},
            ratios=[],
            slow={"up": 1, "down": 1},
            facts=lambda: [
                Fact(f"memory: MB at the peak, {what}", peak, at_most=LIMIT_MB)
                for what, peak in peaks.items()
            ],
        )
