"""``perago`` 0.6.1 from PyPI in an environment and a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.lakefs import Server
from perago.dev import Sources

VERSION = "0.6.1"
_DRIVER = Path(__file__).with_name("peer_driver.py")


class Peer:
    """A worker process that stays, as a real one does: its imports are paid before the race."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, what: str, **words: object) -> Any:
        """Have it do one thing and wait for the answer."""
        if self._process.stdin is None or self._process.stdout is None:
            raise SystemExit("the driver of perago 0.6.1 has no pipes")
        self._process.stdin.write(json.dumps({"do": what, **words}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("the driver of perago 0.6.1 has died")
        return json.loads(line)


@contextmanager
def peer(server: Server) -> Iterator[Peer]:
    """Start it."""
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("PYTHON")},
        "BENCH_LAKEFS": server.lakefs.endpoint,
        "BENCH_KEY": server.lakefs.access_key_id,
        "BENCH_SECRET": server.lakefs.secret,
    }
    with subprocess.Popen(
        # -P: the modules beside the driver are not its own; one is called as the SDK is.
        [str(python_of_peer()), "-P", str(_DRIVER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=server.root,  # Not the checkout, whose perago is another one.
    ) as process:
        try:
            yield Peer(process)
        finally:
            process.kill()


def python_of_peer() -> Path:
    """Make the environment once per user."""
    place = Sources().cache.root.parent / "bench" / f"perago-{VERSION}"
    python = place / "bin" / "python"
    ready = place / ".ready"
    if not ready.exists():
        shutil.rmtree(place, ignore_errors=True)
        print(f"installing perago {VERSION} in {place}", file=sys.stderr)
        venv.create(place, with_pip=True)
        command = [str(python), "-m", "pip", "install", "--quiet", f"perago=={VERSION}"]
        subprocess.run(command, check=True)
        ready.touch()
    return python
