"""Runs one case by the command line: ``python -m tests.faults.bodies.driver SPEC``.

For bodies that end the runner itself: the run is resumed until it is over. It is started in
namespaces of its own, so that what a body leaves running ends with it.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.faults.bodies.cleaning import rooms_of
from tests.patience import LIMIT

RESUMES = 3


def main(spec: Path) -> None:
    given = json.loads(spec.read_text())
    scratch, home = Path(given["scratch"]), Path(given["home"])
    said: dict[str, Any] = {"run": "", "problems": [], "left": [], "stuck": []}
    _perago(scratch, said, "run", *given["words"])
    for _ in range(RESUMES):
        said["run"], over = _run_of(home / "runs.sqlite")
        if over:
            break
        _perago(scratch, said, "run", "--resume", said["run"], "--json")
    _perago(scratch, said, "gc", "--delete", "--json")
    for root in Path(given["root"]).glob("local-*"):
        said["stuck"] += rooms_of(root)
    (scratch / "answer.json").write_text(json.dumps(said))


def _perago(scratch: Path, said: dict[str, Any], *words: str) -> None:
    """Run a command; its words go to a file, because a pipe would wait for those left behind."""
    with (scratch / "said.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "perago", *words],
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            said["problems"].append(f"V5: perago {' '.join(words[:2])} did not end")
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _run_of(state: Path) -> tuple[str, bool]:
    """Find the run, and whether it is over."""
    with sqlite3.connect(state) as db:
        found = db.execute("select id, status from runs").fetchone()
    return (str(found[0]), found[1] != "RUNNING") if found else ("", True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
