"""What the body of an act does; also a program of its own, which imports nothing of Perago."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Protocol

PARTS = 3


class Act(Protocol):
    """What to do; ``path`` counts how often it was begun, over all attempts."""

    path: str
    mode: str
    die: int
    wait: bool
    apart: bool
    do: str
    record: str


def work(workspace: Path, act: Act, give_up: Callable[[], None]) -> int:
    """Do it; ``give_up`` is asked while it waits, and raises when nobody wants the attempt."""
    run = begin(act)
    # Whoever dies before the end leaves a link to what is not the attempt's (V6).
    way_out = workspace / "way-out"
    way_out.symlink_to(Path(act.path).parent / "outside")
    changes = act.mode == "change" or (act.mode == "once" and run == 0)
    for part in range(PARTS if changes else 0):
        if act.die == run and part == 1:
            die(act)
        name = f"part{part}-{run}.txt" if act.apart else f"part{part}.txt"
        (workspace / name).write_text(f"{run}:{part}")
    if changes:
        (workspace / "old.txt").unlink(missing_ok=True)
    elif act.die == run:
        die(act)
    if act.wait:
        _wait(act, give_up)
    way_out.unlink()
    if run == 0 and act.do:
        told(act, "do")
        DEEDS[act.do](workspace)
    return run


def told(act: Act, harm: str) -> None:
    with Path(act.record).open("a") as record:
        record.write(f"{Path(act.path).name}:{harm}\n")


def die(act: Act) -> None:
    told(act, "die")
    os.kill(os.getpid(), signal.SIGKILL)


def begin(act: Act) -> int:
    with Path(f"{act.path}.runs").open("a") as runs:
        run = runs.tell()
        runs.write("x")
    return run


def _wait(act: Act, give_up: Callable[[], None]) -> None:
    Path(f"{act.path}.begun").write_text(str(os.getpid()))
    while not Path(f"{act.path}.go").exists():
        try:
            give_up()
        except BaseException:
            Path(f"{act.path}.cancelled").touch()
            raise
        time.sleep(0.02)  # between two looks


def _fill(workspace: Path) -> None:
    """Write more than there is room for."""
    with (workspace / "huge.bin").open("wb") as file:
        for _ in range(64):
            file.write(bytes(1 << 20))


def _handles(workspace: Path) -> None:
    """Open files until there are no handles left."""
    kept = []
    while True:
        kept.append((workspace / "in.bin").open("rb"))


def _vanish(workspace: Path) -> None:
    """Take the attempt directory away, the marker included."""
    shutil.rmtree(workspace.parent)


def _memory(workspace: Path) -> None:
    kept = []
    while True:
        kept.append(bytearray(os.urandom(1 << 20)) * 8)
        time.sleep(0.005)  # the supervisor has to see it grow


DEEDS = {
    "fill": _fill,
    "handles": _handles,
    "vanish": _vanish,
    "memory": _memory,
}


def main() -> None:
    """Be the program of an attempt (Q3)."""
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: asked.append(1))

    def give_up() -> None:
        if asked:
            sys.exit("nobody wants this any more")

    given = {"mode": "change", "die": -1, "wait": False, "apart": False, "do": "", "record": ""}
    params = json.loads(Path(os.environ["PERAGO_PARAMS"]).read_text())
    run = work(Path.cwd(), SimpleNamespace(**given | params), give_up)
    Path(os.environ["PERAGO_RESULT"]).write_text(json.dumps({"run": run}))


if __name__ == "__main__":
    main()
