"""Scenarios as people write them: who does what, and what the branch holds in the end.

Each ``*.txt`` here has a title, maybe the fences it is about, one line for each writer, and at the
end the history and the files of ``main``. A line ``name: ... -> STATUS`` says how that attempt
ended; an attempt that dies has no status.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from perago.protocol.kinds import FenceKind

DIRECTORY = Path(__file__).parent
INPUT = "A"
_STEP = re.compile(
    r"(?:a new step reads (?P<reads>.+?) and|a (?P<late>late )?retry of (?P<retries>.+?)|a person)"
    r" writes (?P<text>\w+)(?:, (?:dies at (?P<dies>[a-z ]+)|is lost at (?P<lost>[a-z ]+)"
    r"|(?P<unheard>loses the answer)))?(?: -> (?P<status>[A-Z_]+))?"
)


@dataclass(frozen=True)
class Step:
    """What one writer does; a person is neither a new step nor a retry."""

    name: str
    text: str
    """What is written; empty for nothing."""
    reads: str = ""
    """Whose commit a new step reads."""
    retries: str = ""
    late: bool = False
    """Whether the broker hands out a retry although the attempt before it completed."""
    dies: str = ""
    lost: str = ""
    unheard: bool = False
    status: str = ""


@dataclass(frozen=True)
class Scenario:
    """One file."""

    title: str
    fences: tuple[FenceKind, ...]
    steps: tuple[Step, ...]
    main: tuple[str, ...]
    files: frozenset[str]


def read(path: Path) -> Scenario:
    """Read a file; a line that is not understood is an error."""
    title, *lines = path.read_text(encoding="utf-8").strip().splitlines()
    said = dict[str, str]()
    steps: list[Step] = []
    for line in filter(None, lines):
        name, _, what = line.partition(": ")
        if name in {"fences", "main", "files"}:
            said[name] = what
        else:
            steps.append(_step(name, what))
    every: tuple[FenceKind, ...] = get_args(FenceKind)
    wanted = said.get("fences", ", ".join(every)).split(", ")
    fences = tuple(fence for fence in every if fence in wanted)
    if len(fences) != len(wanted):
        raise ValueError(f"{path.name}: no such fence in {wanted}")
    files = frozenset() if said["files"] == "-" else frozenset(said["files"].split())
    return Scenario(title, fences, tuple(steps), tuple(said["main"].split(" <- ")), files)


def _step(name: str, what: str) -> Step:
    found = _STEP.fullmatch(what)
    if found is None:
        raise ValueError(f"{name}: {what!r} is not understood")
    said = {key: value or "" for key, value in found.groupdict().items()}
    return Step(
        name=name,
        text="" if said["text"] == "nothing" else said["text"],
        reads=said["reads"],
        retries=said["retries"],
        late=bool(said["late"]),
        dies=said["dies"],
        lost=said["lost"],
        unheard=bool(said["unheard"]),
        status=said["status"],
    )
