"""A whole attempt on the embedded store against the same work by hand: copy, run, copy back."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel

from bench.comparison import Comparison, Options, Ratio
from bench.places import apart, temporary
from perago import WorkspaceSpec, task
from perago.testing import Lab

FILES = 2000
SIZE = 4096
CHANGED = 20


class Nothing(BaseModel):
    """No params."""


class Turn(BaseModel):
    """Which round it is, so that every attempt changes something."""

    turn: int


def touch_some(directory: Path, turn: int) -> None:
    """Change twenty files of two thousand."""
    for number in range(CHANGED):
        (directory / f"{number:04}").write_bytes(turn.to_bytes(8) * (SIZE // 8))


@task(name="change", owner_email="bench@example.com", workspace=WorkspaceSpec())
def change(workspace: Path, params: Turn) -> Nothing:
    """Do the work of the benchmark."""
    touch_some(workspace, params.turn)
    return Nothing()


@contextmanager
def comparison(_: Options) -> Iterator[Comparison]:
    """Prepare two thousand files in a store and in a plain directory."""
    with temporary() as root:
        plain = root / "plain"
        plain.mkdir()
        for number in range(FILES):
            (plain / f"{number:04}").write_bytes(number.to_bytes(8) * (SIZE // 8))
        lab = Lab(root / "lab")
        lab.commit({path.name: path.read_bytes() for path in plain.iterdir()})
        turn = 0

        def attempt() -> None:
            nonlocal turn
            turn += 1
            run = lab.run(change, {"turn": turn})
            if not run.completed:
                raise SystemExit(run.reason)

        def by_hand() -> None:
            nonlocal turn
            turn += 1
            work = apart(root / "works")
            shutil.copytree(plain, work)
            touch_some(work, turn)
            shutil.copytree(work, apart(root / "results"))
            shutil.rmtree(work)

        yield Comparison(
            name="attempt",
            what=f"{FILES} files of {SIZE} bytes, {CHANGED} changed, embedded store",
            contenders={"perago attempt": attempt, "copy, run, copy back": by_hand},
            least=15,
            ratios=[Ratio("attempt / by hand", "perago attempt", "copy, run, copy back", 3.0)],
        )
        lab.close()
