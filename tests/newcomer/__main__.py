"""Plays a newcomer: ``python -m tests.newcomer [pipe] [terminal] [wheel]``.

What is committed is cloned, and README, tutorial and three how-tos are typed word by word: with the
output in a pipe, and in a terminal of 80 columns (tmux). A wheel, installed far from any checkout,
does the same. What the pages show is compared with what is shown.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.docs.pages import ROOT
from tests.docs.plays import PLAYS, play
from tests.docs.shell import Piped, Shell, Terminal
from tests.environment import clean_environment

IN_THE_CLONE: Final = ("README.md", "docs/tutorial.md")
HOW_TOS: Final = (
    "docs/howto/write-a-task.md",
    "docs/howto/debug.md",
    "docs/howto/run-on-lakefs.md",
)
EXTRAS: Final = "lakefs,spark"
Open = Callable[[Path, dict[str, str]], Shell]


def in_a_pipe(scratch: Path) -> None:
    """Follow the pages in a clone, with the output in a pipe."""
    _in_a_clone(scratch, Piped)


def in_a_terminal(scratch: Path) -> None:
    """Follow the pages in a clone, in a terminal of 80 columns."""
    assert shutil.which("tmux"), (
        "a terminal of 80 columns needs tmux: install it, or leave it out with"
        ' make newcomer ARGS="pipe wheel"'
    )
    _in_a_clone(scratch, Terminal)


def from_a_wheel(scratch: Path) -> None:
    """Install a wheel into an environment of its own, and follow the pages without a clone."""
    uv = os.environ.get("UV", "uv")
    quiet = ("--quiet", "--python", sys.executable)
    made = str(scratch / "dist")
    _done(uv, "build", *quiet, "--no-build-isolation", "--wheel", "--out-dir", made, str(ROOT))
    (wheel,) = (scratch / "dist").glob("*.whl")
    _done(uv, "venv", *quiet, "--no-project", str(scratch / "venv"))
    programs = scratch / "venv" / "bin"
    into = ("--quiet", "--python", str(programs / "python"))
    _done(uv, "pip", "install", *into, f"{wheel}[{EXTRAS}]", "pytest")
    environment = clean_environment() | {"PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin"}
    for page in (*IN_THE_CLONE, *HOW_TOS):
        _play(page, Piped, _place(scratch, page), environment)


HOW: dict[str, Callable[[Path], None]] = {
    "pipe": in_a_pipe,
    "terminal": in_a_terminal,
    "wheel": from_a_wheel,
}


def _in_a_clone(scratch: Path, kind: Open) -> None:
    clone = scratch / "perago"
    _done("git", "clone", "--quiet", str(ROOT), str(clone))
    # What was said to this make is not said to those of the pages.
    environment = clean_environment("MAKE", "MFLAGS", "ARGS", "JOBS")
    outside = [place for place in environment["PATH"].split(":") if not place.startswith(str(ROOT))]
    environment["PATH"] = ":".join(outside)
    once = frozenset({"make run"})  # the second page that says so is at a reader who has done it
    for number, page in enumerate(IN_THE_CLONE):
        also = PLAYS[page].in_a_clone - (once if number else frozenset())
        _play(page, kind, clone, environment, also)
        shutil.rmtree(clone / PLAYS[page].project)
    programs = clone / ".venv" / "bin"
    activated = environment | {"PATH": f"{programs}:{environment['PATH']}"}
    for page in HOW_TOS:
        _play(page, kind, _place(scratch, page), activated)


def _place(scratch: Path, page: str) -> Path:
    place = scratch / Path(page).stem
    place.mkdir()
    return place


def _play(
    page: str,
    kind: Open,
    directory: Path,
    environment: dict[str, str],
    also: frozenset[str] = frozenset(),
) -> None:
    began = time.monotonic()
    with kind(directory, environment) as shell:
        play((page,), shell, directory, also)
    _say(f"  {page}  {time.monotonic() - began:.0f} s")


def _done(*words: str) -> None:
    subprocess.run(words, check=True)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """Exit 1 with the first difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "how", nargs="*", choices=[*HOW, []], metavar="HOW", help="all of them unless named"
    )
    for name in parser.parse_args().how or HOW:
        _say(name)
        with tempfile.TemporaryDirectory(prefix="newcomer-") as scratch:
            try:
                HOW[name](Path(scratch))
            except AssertionError as error:
                _say(str(error))
                return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
